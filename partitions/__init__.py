"""Schemes that partition a labelled dataset among federated clients, with a report on the result."""

from partitions.checks import PartitionError
from partitions.label_table import DrawnShares, LabelTable
from partitions.report import Partition, Partitioner, PartitionReport, ScoreSummary
from partitions.schemes import Dirichlet, Equal, Sizes, SortedByScore, from_description
from partitions.splits import Overlap, measure_overlap, split_by_group, split_train_test

__all__ = [
    "Dirichlet",
    "DrawnShares",
    "Equal",
    "LabelTable",
    "Overlap",
    "Partition",
    "PartitionError",
    "PartitionReport",
    "Partitioner",
    "ScoreSummary",
    "Sizes",
    "SortedByScore",
    "from_description",
    "measure_overlap",
    "split_by_group",
    "split_train_test",
]
