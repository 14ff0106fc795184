"""Shim: see benchmarks.results."""

from benchmarks.results import CHECKSUM as CHECKSUM
from benchmarks.results import POOLED as POOLED
from benchmarks.results import SCHEMA as SCHEMA
from benchmarks.results import LedgerEntry as LedgerEntry
from benchmarks.results import RoundRecord as RoundRecord
from benchmarks.results import RunRecord as RunRecord
from benchmarks.results import checksum as checksum
from benchmarks.results import chosen_round as chosen_round
from benchmarks.results import read_folders as read_folders
from benchmarks.results import read_record as read_record
from benchmarks.results import read_records as read_records
from benchmarks.results import record_from_json as record_from_json
from benchmarks.results import round_from_json as round_from_json
from benchmarks.results import write_bytes as write_bytes
from benchmarks.results import write_record as write_record
from benchmarks.results import write_text as write_text
from benchmarks.run_config import VALIDATION as VALIDATION
