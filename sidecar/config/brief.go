package config

// brief is how an upstream repeats calls that another tier answers if it does not. The
// preset's own patience would keep callers from that answer, and spend attempts of each
// call on a model that is down; another model is the better second attempt.
const brief = "retry: {attempts: 2, base: 200ms, cap: 20s, jitter: full}"

// tiers are the upstreams that are tiers of a cascade, the first tier included.
func tiers(upstreams []entry) map[string]bool {
	all := make(map[string]bool)
	for _, e := range upstreams {
		below := e.Value.Get("llm").Get("cascade").Get("tiers")
		if below == nil || len(below.Items) == 0 {
			continue
		}
		all[e.Name] = true
		for _, t := range below.Items {
			if named := t.Get("upstream"); named != nil {
				all[named.Text] = true
			}
		}
	}
	return all
}

// makeBrief takes the patience from a preset that has some.
func (d *decoder) makeBrief(base *node) {
	if base.Get("quota") == nil {
		return
	}
	drop(base, "retry", "quota")
	base.Fields = append(base.Fields, d.Read([]byte(brief)).Fields...)
}
