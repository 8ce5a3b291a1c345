// Recurrent kernels that walk each (sequence, head) as one serial chain of 16-token chunks, FlashKDA forward:
//   t = fixed + chunks on the busiest SM x sm_chunk_us x share + (tokens heads / 16) x memory_chunk_us
// share: 1 with one chain per SM, pair_share with two, crowd_share with more (chains of one SM hide each other's
// latency). memory_chunk_us is the work that all SMs share (first kernel, HBM traffic), as bytes / bw_shared.
// Source: k3-facts section 4.5 (form, shares 0.8 and 1.0); own fit to 44 H200 rows, 512 to 32768 tokens, 8 to 96 heads.
#include <cmath>

#include "models/cost/curve.h"

namespace k3sim {

namespace {

class SerialChainCurve final : public Curve {
 public:
  explicit SerialChainCurve(const CostCurve& c)
      : sms_(c.at("sms")),
        fixed_(c.at("fixed_us")),
        chunk_(c.at("sm_chunk_us")),
        pair_(c.at("pair_share")),
        crowd_(c.at("crowd_share")),
        bandwidth_(c.at("bw_shared") * 1e6) {}

  double microseconds(const Kernel& k) const override {
    constexpr double kChunk = 16, kTileBytes = 48768;  // k3-facts 4.2: both kernels, per chunk and head of 128
    const double chains = static_cast<double>(k.batch * k.heads);
    const double per_sm = std::ceil(chains / sms_);
    const double chunks = std::ceil(static_cast<double>(k.seq_q) / kChunk);
    const double share = per_sm <= 1 ? 1.0 : per_sm <= 2 ? pair_ : crowd_;
    const double bytes = kTileBytes * chunks * chains * static_cast<double>(k.dim_qk) / 128.0;
    return fixed_ + per_sm * chunks * chunk_ * share + bytes / bandwidth_;
  }

 private:
  double sms_, fixed_, chunk_, pair_, crowd_, bandwidth_;
};

}  // namespace

std::unique_ptr<const Curve> make_serial_chain_curve(const CostCurve& curve) {
  return std::make_unique<SerialChainCurve>(curve);
}

}  // namespace k3sim
