package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/llm"
)

// Cascade lists the fallbacks of an upstream, in order. See docs/how-to/choose-a-fallback-model.md.
type Cascade struct {
	Deadline time.Duration // for the first content, all tiers together
	Tiers    []Tier        // without the upstream itself
	Wait     time.Duration // longest wait for a tier while a lower tier has a model

	Maintenance Maintenance
}

// Maintenance configures the responses during maintenance.
type Maintenance struct {
	On      bool
	Message string   // replaces the messages of tiers, and no model is called; "" changes nothing
	Reduced []string // features that are degraded or unavailable
}

// A Tier is one fallback: exactly one of another model, the cache, static answers and a message.
type Tier struct {
	Name       string
	Confidence float64 // of its answers, from 0 to 1
	Timeout    time.Duration

	Upstream  string // another upstream of the same wire family; "" with Model set means the same upstream
	Model     string // another model; "" means the same model
	Cached    bool
	Answers   string   // file with static answers
	Table     *Answers // or the table with static answers
	Threshold float64  // lowest confidence of a static answer that is used; 0 means the default
	Messages  []string // one is chosen at random
	Contact   string   // contact for help, added to each message
}

// Answers are static answers in a DynamoDB table.
type Answers struct {
	Table    string
	Region   string // "" means the SDK's default
	Endpoint string // "" means the endpoint of the region
	Every    time.Duration
}

// Static reports whether the tier has static answers.
func (t *Tier) Static() bool { return t.Answers != "" || t.Table != nil }

var cascadeFields = []field[Cascade]{
	one("deadline", duration, func(c *Cascade) *time.Duration { return &c.Deadline }, "1m", "How long all tiers together may take to begin an answer; an unstreamed answer begins when it is complete."),
	one("wait", duration, func(c *Cascade) *time.Duration { return &c.Wait }, "1s", "Longest wait for a tier's limits and retries while a lower tier has a model."),
	{"maintenance", "fields", "off", "Message during maintenance.", readMaintenance},
	{"tiers", "a list of tiers", "none", "Fallbacks if the upstream fails, is paused or has an open breaker. weir uses the first tier that can answer.", readTiers},
}

var tierFields = []field[Tier]{
	one("name", word, func(t *Tier) *string { return &t.Name }, "its kind", "Name in `X-Weir-Tier` and in metrics."),
	one("confidence", zeroShare, func(t *Tier) *float64 { return &t.Confidence }, "70%, 50%, 30% and 10%", "Quality of its answers; defaults for model, cache, static answers and message."),
	one("timeout", duration, func(t *Tier) *time.Duration { return &t.Timeout }, "a part of `deadline`", ""),
	one("upstream", word, func(t *Tier) *string { return &t.Upstream }, "the same", "Other upstream of the same wire family, with its limits, breaker and key."),
	one("model", word, func(t *Tier) *string { return &t.Model }, "the same", "Other model."),
	one("cached", boolean, func(t *Tier) *bool { return &t.Cached }, "false", "Answers from the cache, even stale ones."),
	{"answers", "a file, or fields", "none", "Static answers: a file or a DynamoDB table.", readAnswers},
	one("threshold", share, func(t *Tier) *float64 { return &t.Threshold }, "see docs/how-to/choose-a-fallback-model.md", ""),
	one("message", listOf(form[string]{"texts", sentence.read}), func(t *Tier) *[]string { return &t.Messages }, "none", "Text that needs no model; of several texts, weir chooses one at random."),
	one("contact", sentence, func(t *Tier) *string { return &t.Contact }, "none", "Contact information for users, added to the message and the metadata."),
}

var maintenanceFields = []field[Maintenance]{
	one("on", boolean, func(m *Maintenance) *bool { return &m.On }, "false", "Turns maintenance on."),
	one("message", sentence, func(m *Maintenance) *string { return &m.Message }, "none", "Replaces the `message` of a tier. weir calls no model, but still uses the cache and static answers."),
	one("reduced", listOf(form[string]{"features", word.read}), func(m *Maintenance) *[]string { return &m.Reduced }, "none", "Features with reduced quality. Every answer lists them in `X-Weir-Reduced` and in its metadata."),
}

// sentence reads any text that is not empty.
var sentence = text("a text", func(s string) (string, string, string) {
	if s == "" {
		return "", "want a text", ""
	}
	return s, "", ""
})

// zeroShare reads a share that may be 0.
var zeroShare = form[float64]{share.words, func(d *decoder, n *node) (float64, bool) {
	if n.Kind == doc.Scalar && (n.Text == "0" || n.Text == "0%") {
		return 0, true
	}
	return share.read(d, n)
}}

func readCascade(d *decoder, n *node, l *LLM) {
	if isOff(n) {
		return
	}
	l.Cascade = new(Cascade)
	object(d, n, cascadeFields, l.Cascade)
	if len(l.Cascade.Tiers) == 0 && n.Get("tiers") == nil {
		d.Bad(n, "write tiers: [{message: ...}]", "has no tiers")
	}
	if said := l.Cascade.Maintenance.Message; said != "" && !slices.ContainsFunc(l.Cascade.Tiers, func(t Tier) bool { return len(t.Messages) > 0 }) {
		d.Bad(n.Get("maintenance").Get("message"), "add {message: ...} to tiers", "no tier uses it")
	}
}

// readMaintenance reads the texts even if maintenance is off, so that errors show before it is switched on.
func readMaintenance(d *decoder, n *node, c *Cascade) {
	if !isOff(n) {
		object(d, n, maintenanceFields, &c.Maintenance)
	}
}

var answersFields = []field[Answers]{
	one("table", tableName, func(a *Answers) *string { return &a.Table }, "required", "Table of entries as in a file; see docs/how-to/choose-a-fallback-model.md."),
	one("region", word, func(a *Answers) *string { return &a.Region }, "from the AWS SDK", "Region."),
	one("endpoint", word, func(a *Answers) *string { return &a.Endpoint }, "the region's", ""),
	one("every", duration, func(a *Answers) *time.Duration { return &a.Every }, "5m", ""),
}

func readAnswers(d *decoder, n *node, t *Tier) {
	if n.Kind != doc.Mapping {
		t.Answers, _ = word.read(d, n)
		return
	}
	a := Answers{Every: 5 * time.Minute}
	object(d, n, answersFields, &a)
	if n.Get("table") == nil {
		d.Bad(n, "write table: weir-answers", "has no table")
	}
	if u, err := url.Parse(a.Endpoint); a.Endpoint != "" && (err != nil || !strings.HasPrefix(u.Scheme, "http") || u.Host == "" || u.User != nil) {
		d.Bad(n.Get("endpoint"), "write it as http://localhost:8000", "is not the URL of a server")
	}
	if a.Every < time.Second {
		d.Bad(n.Get("every"), "", "must be at least 1s: the whole table is read")
	}
	t.Table = &a
}

const mostTiers = 20

func readTiers(d *decoder, n *node, c *Cascade) {
	if n.Kind != doc.List || len(n.Items) == 0 || len(n.Items) > mostTiers {
		d.Bad(n, "write tiers: [{model: ...}, {cached: true}, {message: ...}]", "%s: want a list of 1 to %d tiers", n.Show(), mostTiers)
		return
	}
	for _, item := range n.Items {
		t := Tier{Confidence: -1}
		if object(d, item, tierFields, &t) && d.tier(item, &t, c) {
			c.Tiers = append(c.Tiers, t)
		}
	}
}

// tier determines the kind of a tier.
func (d *decoder) tier(n *node, t *Tier, c *Cascade) bool {
	kinds := []struct {
		is         bool
		name       string
		confidence float64
	}{
		{t.Upstream != "" || t.Model != "", "secondary", 0.7}, {t.Cached, "cached", 0.5},
		{t.Static(), "static", 0.3}, {len(t.Messages) > 0, "message", 0.1},
	}
	found := 0
	for _, k := range kinds {
		if !k.is {
			continue
		}
		if found++; t.Name == "" {
			t.Name = k.name
		}
		if t.Confidence < 0 {
			t.Confidence = k.confidence
		}
	}
	if found != 1 {
		d.Bad(n, "", "want exactly one of upstream or model, cached, answers, and message")
		return false
	}
	if !d.checkName(n, t.Name) {
		return false
	}
	for _, before := range c.Tiers {
		if before.Name == t.Name || t.Name == primary {
			d.Bad(n, "give it another name", "duplicate tier %s", t.Name)
			return false
		}
	}
	if t.Threshold != 0 && !t.Static() {
		d.Bad(n.Get("threshold"), "", "is for static answers only")
	}
	if t.Contact != "" && len(t.Messages) == 0 {
		d.Bad(n.Get("contact"), "", "is for messages only")
	}
	t.Answers = d.beside(t.Answers)
	return true
}

// primary is the name of the tier for the upstream itself.
const primary = "primary"

// checkTiers checks the upstreams that tiers name.
func (d *decoder) checkTiers(n *node, f *File) {
	for name, l := range f.LLM {
		if l.Cascade == nil {
			continue
		}
		at := n.Get(name).Get("llm").Get("cascade").Get("tiers")
		for _, t := range l.Cascade.Tiers {
			if t.Upstream != "" {
				d.checkTier(at, f, name, &t)
			}
			if t.Cached && l.Cache == nil {
				d.Bad(at, "add cache: true beside cascade", "there is no cache for tier %s", t.Name)
			}
		}
	}
}

// provisional keeps the presets' rates from delaying calls to the models of cascades if the provider does not report
// its limits. If the provider then throttles a call, another tier answers it. A rate in the file still applies.
func (f *File) provisional() {
	inCascade := make(map[string]bool)
	for name, l := range f.LLM {
		if l.Cascade == nil {
			continue
		}
		inCascade[name] = true
		for _, t := range l.Cascade.Tiers {
			inCascade[t.Upstream] = true
		}
	}
	for i := range f.Upstreams {
		u := &f.Upstreams[i]
		for k := range u.Policy.Limits {
			l := &u.Policy.Limits[k]
			l.Provisional = l.Provisional && inCascade[u.Name]
		}
	}
}

// checkTier checks whether requests for an upstream can also be sent to the upstream of one of its tiers.
func (d *decoder) checkTier(at *node, f *File, name string, t *Tier) {
	family, other := f.LLM[name].Family, f.LLM[t.Upstream].Family
	urls := make(map[string]*url.URL)
	var known []string
	for i := range f.Upstreams {
		urls[f.Upstreams[i].Name] = f.Upstreams[i].URL
		known = append(known, f.Upstreams[i].Name)
	}
	switch there, ok := urls[t.Upstream]; {
	case !ok:
		d.Unknown(at, "upstream", t.Upstream, known)
	case t.Upstream == name && t.Model == "":
		d.Bad(at, "name another upstream, or a model", "tier %s would call the same upstream and model again", t.Name)
	case !f.speaks(t.Upstream):
		d.Bad(at, "add llm: {} to it", "upstream %s is not a language model", t.Upstream)
	case !alike(family, other):
		d.Bad(at, "name an upstream of the same wire format", "upstream %s has the wire format %s, but this upstream has %s: a cascade does not convert formats", t.Upstream, other, family)
	case f.unsigned(t.Upstream) && !sameOrigin(urls[name], there):
		d.Bad(at, "add aws: {region: us-east-1} to "+t.Upstream, "the caller's signature is not sent to upstream %s, which has no region", t.Upstream)
	}
}

// alike reports whether requests of one family can be sent to another, as far as the file shows. Each provider has
// its own paths.
func alike(a, b llm.Family) bool {
	of, _, _ := strings.Cut(string(a), "-")
	other, _, _ := strings.Cut(string(b), "-")
	return a == "" || b == "" || of == other
}

// speaks reports whether an upstream is a language model.
func (f *File) speaks(upstream string) bool { _, ok := f.LLM[upstream]; return ok }

// unsigned reports whether only the client's signature determines service and region of requests for an upstream.
func (f *File) unsigned(upstream string) bool {
	a, ok := f.AWS[upstream]
	return ok && (a.Service == "" || a.Region == "")
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
