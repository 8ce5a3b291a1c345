// Recurrent kernels that walk each (sequence, head) as one serial chain of 16-token chunks, FlashKDA forward:
//   t = fixed + chunks on the busiest SM x sm_chunk_us x share + (tokens heads / 16) x chunk_head_ns
// share: 1 with one chain per SM, pair_share with two, crowd_share with more (chains of one SM hide each other's
// latency). chunk_head_ns is the work that all SMs share (first kernel, traffic) at 128 dimensions; it hardly differs
// between H100 and H200 (13.5 and 13.3), so it is not a matter of HBM bandwidth.
// The pre-pass of context parallelism, `prepass_chain`, has the same form with chunks of 64 tokens and four blocks of
// threads per chain, each of which walks all chunks (own fit to 42 H200 rows, 2048 to 32768 tokens, 4 to 96 heads).
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
        shared_us_(is_prepass(c) ? 0.0 : c.at("chunk_head_ns") * 1e-3),
        chunk_tokens_(is_prepass(c) ? 64 : 16),
        blocks_(is_prepass(c) ? 4 : 1) {}

  double microseconds(const Kernel& k) const override {
    constexpr double kUsualDim = 128;
    const double chains = static_cast<double>(k.batch * k.heads);
    const double per_sm = std::ceil(chains * blocks_ / sms_);
    const double chunks = std::ceil(static_cast<double>(k.seq_q) / chunk_tokens_);
    const double share = per_sm <= 1 ? 1.0 : per_sm <= 2 ? pair_ : crowd_;
    const double shared = chunks * chains * static_cast<double>(k.dim_qk) / kUsualDim * shared_us_;
    return fixed_ + per_sm * chunks * chunk_ * share + shared;
  }

 private:
  static bool is_prepass(const CostCurve& c) { return c.form == "prepass_chain"; }

  double sms_, fixed_, chunk_, pair_, crowd_, shared_us_, chunk_tokens_, blocks_;
};

}  // namespace

std::unique_ptr<const Curve> make_serial_chain_curve(const CostCurve& curve) {
  return std::make_unique<SerialChainCurve>(curve);
}

}  // namespace k3sim
