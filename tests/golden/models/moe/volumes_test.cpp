// The published volume tables, number by number. Source: k3-facts sections 1.5, 3.2, 3.6; hardware section 3.5.
#include <doctest/doctest.h>

#include <cmath>

#include "models/moe/moonep_planner.h"
#include "models/moe/volumes.h"

using namespace k3sim;

namespace {

double to_digits(double v, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::round(v * scale) / scale;
}
double megabytes(Bytes b) {
  return b.as_double() / 1e6;
}

ExchangeShape k3_shape(int ranks) {
  ExchangeShape shape;
  shape.ranks = ranks;
  return shape;
}

}  // namespace

TEST_CASE("volumes: the K3 table of distinct destinations and egress is reproduced to its last digit") {
  struct Row {
    int ranks;
    double distinct, remote, egress_mb, remote_nodes, rdma_mb;
    int rdma_digits;
  };
  const Row table[] = {{8, 7.07, 6.19, 363, 0, 0, 0},
                       {16, 10.35, 9.71, 570, 1.00, 58.7, 1},
                       {32, 12.83, 12.43, 730, 2.97, 174.5, 1},
                       {64, 14.36, 14.14, 830, 6.19, 363, 0},
                       {128, 15.22, 15.10, 887, 9.71, 570, 0}};
  for (const Row& row : table) {
    CAPTURE(row.ranks);
    const ExchangeVolume v = exchange_volume(k3_shape(row.ranks));
    CHECK(to_digits(v.distinct_ranks, 2) == row.distinct);
    CHECK(to_digits(v.remote_ranks, 2) == row.remote);
    CHECK(to_digits(megabytes(v.egress), 0) == row.egress_mb);
    CHECK(to_digits(v.remote_domains, 2) == row.remote_nodes);
    CHECK(to_digits(megabytes(v.rdma_egress), row.rdma_digits) == row.rdma_mb);
    CHECK(to_digits(megabytes(v.logical), 1) == 939.5);
  }
}

TEST_CASE("volumes: distinct nodes of top-8 of 256") {
  const double table[][2] = {{2, 1.99}, {4, 3.61}, {8, 5.29}, {16, 6.52}, {32, 7.27}};
  for (const auto& [nodes, distinct] : table) {
    CHECK(to_digits(expected_distinct(static_cast<int>(nodes), 256, 8), 2) == distinct);
  }
  CHECK(expected_distinct_limited(8, 4, 256, 8) <= 4.0);
  CHECK(expected_distinct_limited(4, 4, 256, 8) == expected_distinct(4, 256, 8));
}

TEST_CASE("volumes: receive buffers against the copy-free worst case") {
  struct Row {
    int ranks;
    std::int64_t rows;
    double padding_pct, buffer_gb, worst_gb;
    int worst_digits;
  };
  const Row table[] = {{8, 159616, 21.8, 1.144, 7.52, 2},
                       {16, 145408, 10.9, 1.042, 15.0, 1},
                       {32, 138240, 5.5, 0.991, 30.1, 1},
                       {64, 134656, 2.7, 0.965, 60.1, 1}};
  for (const Row& row : table) {
    CAPTURE(row.ranks);
    constexpr std::int64_t kEntries = 8192 * 16;
    const std::int64_t rows = receive_buffer_rows(kEntries, 896 / row.ranks, 128);
    CHECK(rows == row.rows);
    CHECK(to_digits(100.0 * (static_cast<double>(rows) / kEntries - 1.0), 1) == row.padding_pct);
    CHECK(to_digits(static_cast<double>(rows) * 7168 / 1e9, 3) == row.buffer_gb);
    CHECK(to_digits(static_cast<double>(row.ranks * kEntries) * 7168 / 1e9, row.worst_digits) == row.worst_gb);
  }
}

TEST_CASE("volumes: replicas, pools and plan") {
  const ExpertShape expert;
  CHECK(to_digits(megabytes(replica_weight_bytes(expert)), 2) == 66.06);
  CHECK(to_digits(megabytes(replica_gradient_bytes(expert)), 1) == 132.1);
  CHECK(to_digits(megabytes(replica_pool_bytes(expert, 112)) / 1000, 1) == 22.2);
  CHECK(to_digits(megabytes(replica_pool_bytes(expert, 14)) / 1000, 2) == 2.77);
  const PlanBytes r8 = plan_bytes(k3_shape(8)), r64 = plan_bytes(k3_shape(64));
  CHECK(to_digits(megabytes(r8.multicast) * 1000, 0) == 86);
  CHECK(to_digits(megabytes(r64.multicast) * 1000, 0) == 688);
  CHECK(to_digits(megabytes(r8.multicast + r8.left_at_root) * 1000, 0) == 111);
  CHECK(to_digits(megabytes(r64.multicast + r64.left_at_root) * 1000, 0) == 714);
  CHECK(to_digits(megabytes(r8.root_exchange), 2) == 0.52);
}

TEST_CASE("volumes: halving the width with doubled top-k keeps the bytes per token of K2") {
  CHECK(values_per_token(16, 3584) == 57'344);
  CHECK(values_per_token(8, 7168) == 57'344);
}

TEST_CASE("volumes: the entries of a token are its primaries and their duplicates") {
  // Groups with one entry + groups with several account for every entry when top-2 is spread over two groups.
  const double distinct = expected_distinct(2, 4, 2);  // pairs of 4 experts: 2 of 6 in one group
  CHECK(distinct == doctest::Approx(2.0 * 4 / 6 + 1.0 * 2 / 6));
  CHECK(expected_shared_groups(2, 4, 2) == doctest::Approx(2.0 / 6));
}
