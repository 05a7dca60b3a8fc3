// The body of functions that make weights in pairs, by MASKWISE_AS_PAIRS: see pairs_of_weights.

const row_d d;
const std::int64_t panel = 2 * row_lanes();
auto sum = hn::Zero(d);
const float* from = first;
for (float* to = first; keys > 0; keys -= 2, from += 2 * panel, to += panel) {
    const auto even = exp_below_one(hn::MulSub(hn::LoadU(d, from), factor, shift));
    auto odd = hn::Zero(d);
    if (keys > 1) odd = exp_below_one(hn::MulSub(hn::LoadU(d, from + panel), factor, shift));
    hn::StoreU(MASKWISE_AS_PAIRS(even, odd), d, to);
    sum = hn::Add(sum, hn::Add(even, odd));
}
return sum;
#undef MASKWISE_AS_PAIRS
