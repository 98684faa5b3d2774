package config

// brief is the retry policy of an upstream in a cascade, where another tier can answer. The preset's retries would
// delay the fallback and spend attempts on a model that is down. Another model is the better second attempt.
const brief = "retry: {attempts: 2, base: 200ms, cap: 20s, jitter: full}"

// tiers returns the names of the upstreams that are tiers of a cascade, including the first tier.
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

// makeBrief replaces a preset's retries and quota by brief. Presets without a quota are left as they are.
func (d *decoder) makeBrief(base *node) {
	if base.Get("quota") == nil {
		return
	}
	drop(base, "retry", "quota")
	base.Fields = append(base.Fields, d.Read([]byte(brief)).Fields...)
}
