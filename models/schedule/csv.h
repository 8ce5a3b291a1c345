// PyTorch's schedule CSV, read strictly and written in both flavours.
//
//   file   := row*                          row r is pipeline rank r; no header, no comments
//   cell   := "" | action                   "" is an idle slot; blanks around a cell are trimmed
//   action := STAGE TYPE [MB] | "(" action ";" action ")OVERLAP_F_B"
//   TYPE   := F I B W UNSHARD RESHARD REDUCE_GRAD SEND_F RECV_F SEND_B RECV_B
// Flavours: compute_only (F I B W OVERLAP_F_B and idle) and compute_comms (complete, no idle). Legacy files write BW
// for the full backward and B for the input gradient (or B and W without I); they are detected, translated and
// reported. PyTorch matches prefixes and so reads 2BW0 as stage 2, B, no micro-batch; here trailing characters are an
// error. Source: torch/distributed/pipelining/schedules.py at 00722e6 (_Action.from_str, _load_csv, _dump_csv),
// engine-design 11.1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/schedule/schedule.h"
#include "sim/base/error.h"

namespace k3sim {

// One thing wrong with a schedule: rank and index in its row (-1: the whole file or row).
struct ScheduleProblem {
  int rank = -1;
  int index = -1;
  std::string what;
};

struct CsvSchedule {
  Schedule schedule;       // stages and micro-batches are inferred as largest + 1
  bool transfers = false;  // compute_comms
  bool legacy = false;     // translated: BW -> B, B -> I
  bool crlf = false;       // line ends of the file
  bool final_newline = true;
  bool exact = true;                      // write_schedule_csv gives the same bytes (unless legacy)
  std::vector<ScheduleProblem> problems;  // of the text; the schedule is usable only if empty
  std::vector<Place> places;              // of the problems, same order
  std::string dialect() const;            // "compute_only", "compute_comms", with "legacy_" in front if translated
};

CsvSchedule parse_schedule_csv(std::string_view text, const std::string& file);
// Reads and parses; throws ConfigError with all problems and their places.
CsvSchedule read_schedule_csv(const std::string& file);

struct CsvStyle {
  bool crlf = true;  // what Python's csv writer produces
  bool final_newline = true;
};
// Why the schedule cannot be written; empty if it can.
std::string csv_refusal(const Schedule& schedule);
// Throws ConfigError with the refusal. Annotations (ActionFlag) are not part of the format and are left out.
std::string write_schedule_csv(const Schedule& schedule, const CsvStyle& style = {});

}  // namespace k3sim
