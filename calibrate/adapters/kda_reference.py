"""Token-by-token KDA recurrence in double precision, gate, normalisation and sigmoid included.

S_t = (I - b k k^T) Diag(exp g) S_{t-1} + b k v^T,  o_t = scale * S_t^T q_t, with g = bound * sigmoid(exp(A) * (raw + bias)),
b = sigmoid(raw), q and k divided by their length. Source: KDA as described in k3-facts section 4.1.
"""


def kda_reference(torch, q, k, v, g, beta, scale, a_log, dt_bias, lower_bound, lengths=None):
    q, k, v, g, beta = (x.double() for x in (q, k, v, g, beta))
    heads, width = q.shape[2], q.shape[3]
    q = q / (q.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    k = k / (k.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    decay = (lower_bound * torch.sigmoid(a_log.double().exp()[:, None] * (g + dt_bias.double().view(heads, width)))).exp()
    beta = torch.sigmoid(beta)
    out = torch.zeros_like(v)
    starts = set()
    position = 0
    for length in lengths or [q.shape[1]]:
        starts.add(position)
        position += length
    state = None
    for t in range(q.shape[1]):
        if t in starts:
            state = torch.zeros(q.shape[0], heads, width, v.shape[3], dtype=torch.float64, device=q.device)
        state = decay[:, t, :, :, None] * state
        u = beta[:, t, :, None] * (v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], state))
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], u)
        out[:, t] = scale * torch.einsum("bhk,bhkv->bhv", q[:, t], state)
    return out
