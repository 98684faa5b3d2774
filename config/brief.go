package config

// brief is how an upstream repeats calls that another tier answers if it does not. The
// preset's own patience would keep callers from that answer, and spend attempts of each
// call on a model that is down; another model is the better second attempt.
const brief = "retry: {attempts: 2, base: 200ms, cap: 20s, jitter: full}"

// tiers are the upstreams that are tiers of a cascade, the first tier included.
func tiers(upstreams []entry) map[string]bool {
	all := make(map[string]bool)
	for _, e := range upstreams {
		below := e.value.get("llm").get("cascade").get("tiers")
		if below == nil || len(below.items) == 0 {
			continue
		}
		all[e.name] = true
		for _, t := range below.items {
			if named := t.get("upstream"); named != nil {
				all[named.text] = true
			}
		}
	}
	return all
}

// makeBrief takes the patience from a preset that has some.
func (d *decoder) makeBrief(base *node) {
	if base.get("quota") == nil {
		return
	}
	base.drop("retry", "quota")
	base.fields = append(base.fields, d.tree([]byte(brief)).fields...)
}
