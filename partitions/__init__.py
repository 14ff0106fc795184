"""Ways to share one labelled dataset among federated clients, with a report of what was obtained."""

from partitions.checks import PartitionError
from partitions.dirichlet import Dirichlet
from partitions.label_table import LabelTable
from partitions.registry import describe, from_description
from partitions.report import Partition, Partitioner, PartitionReport, ScoreSummary
from partitions.sizes import Equal, Sizes, SortedByScore
from partitions.splits import Overlap, measure_overlap, split_by_group, split_train_test

__all__ = [
    "Dirichlet",
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
    "describe",
    "from_description",
    "measure_overlap",
    "split_by_group",
    "split_train_test",
]
