package xray

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/observe/trace"
)

// A Sampler decides by the sampling rules that X-Ray's centre has: it is asked for them every five minutes, and told every
// ten seconds how many requests there were, upon which it says how many of its reservoir are for this process. While the
// centre has said nothing for an hour, or nothing yet, the sampler does not decide, and the tracer's own rule holds. Make
// one with NewSampler and end it with Close. It is safe for concurrent use, and decides without a lock.
type Sampler struct {
	api     *API
	service string
	log     *slog.Logger
	client  string // 24 hexadecimal digits, of this process

	rules   atomic.Pointer[ruleBook]
	failing bool // of the loop alone

	stop context.CancelFunc
	done sync.WaitGroup
}

var _ trace.Sampler = (*Sampler)(nil)

// A ruleBook is the rules in their order.
type ruleBook struct {
	read time.Time
	all  []*rule
}

// A rule is one of X-Ray's, with what has become of it here. What is not counted is as the centre says it.
type rule struct {
	name, service, method, host, path string
	priority                          int
	reservoir                         int64

	*counts
}

// counts are kept when rules are read again.
type counts struct {
	rate      atomic.Uint64 // a share of 1<<32
	quota     atomic.Int64  // of the reservoir, a second
	quotaEnds atomic.Int64  // Unix nanoseconds, from which the quota is void; 0 if there was none
	second    atomic.Int64  // that taken counts in
	taken     atomic.Int64

	requests, sampled, borrowed atomic.Int64 // since the centre was told
}

// How often the centre is asked, and for how long its rules hold without it.
const (
	readRules   = 5 * time.Minute
	tellCounts  = 10 * time.Second
	rulesHold   = time.Hour
	rulesAnswer = 5 * time.Second
)

// NewSampler makes a sampler, and begins to ask the centre. log may be nil.
func NewSampler(api *API, service string, log *slog.Logger) *Sampler {
	var id [12]byte
	_, _ = rand.Read(id[:])
	ctx, stop := context.WithCancel(context.Background())
	s := &Sampler{api: api, service: cmp.Or(service, "weir"), log: log, client: hex.EncodeToString(id[:]), stop: stop}
	s.done.Go(func() { s.loop(ctx) })
	return s
}

// Close ends what the sampler does.
func (s *Sampler) Close() error {
	s.stop()
	s.done.Wait()
	return nil
}

// Sample is trace.Sampler's.
func (s *Sampler) Sample(a trace.Asked, now time.Time) (yes, known bool) {
	book := s.rules.Load()
	if book == nil || now.Sub(book.read) > rulesHold {
		return false, false
	}
	for _, r := range book.all {
		if matches(r.service, s.service) && matches(r.method, a.Method) && matches(r.host, a.Host) && matches(r.path, a.Path) {
			return r.sample(now), true
		}
	}
	return false, false
}

// sample takes a place of the reservoir, the share that is this process's or, while that is not known, one a second; of
// the rest it is the rate that decides.
func (r *rule) sample(now time.Time) bool {
	r.requests.Add(1)
	second := now.Unix()
	if at := r.second.Load(); at != second && r.second.CompareAndSwap(at, second) {
		r.taken.Store(0)
	}
	most, borrows := r.quota.Load(), false
	if now.UnixNano() >= r.quotaEnds.Load() {
		most, borrows = min(r.reservoir, 1), true
	}
	yes := r.taken.Load() < most && r.taken.Add(1) <= most
	if yes && borrows {
		r.borrowed.Add(1)
		return true // it is counted as borrowed, and not as sampled
	}
	if yes = yes || uint64(mathrand.Uint32()) < r.rate.Load(); yes {
		r.sampled.Add(1)
	}
	return yes
}

// matches reports whether a text is as a pattern says, in which * stands for anything and ? for one character.
func matches(pattern, text string) bool {
	star, back := -1, 0
	p := 0
	for t := 0; t < len(text); {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, back = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || lower(pattern[p]) == lower(text[t])):
			p++
			t++
		case star >= 0:
			back++
			p, t = star+1, back
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// loop asks the centre, at first for its rules.
func (s *Sampler) loop(ctx context.Context) {
	tick := time.NewTicker(tellCounts)
	defer tick.Stop()
	for {
		book := s.rules.Load()
		var err error
		if book == nil || time.Since(book.read) >= readRules {
			err = s.read(ctx)
		}
		if book != nil && err == nil {
			err = s.tell(ctx)
		}
		s.heard(ctx, err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// heard logs how it went, when that changes.
func (s *Sampler) heard(ctx context.Context, err error) {
	if was := s.failing; s.log != nil && was != (err != nil) && ctx.Err() == nil {
		if err != nil {
			s.log.Warn("X-Ray's sampling rules not read", "error", err.Error())
		} else {
			s.log.Info("X-Ray's sampling rules read again")
		}
	}
	s.failing = err != nil
}

// mostRules is how many rules are kept: each call of a trace's begin goes through them.
const mostRules = 1000

// read reads the rules, until they are at their end or there are too many.
func (s *Sampler) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rulesAnswer)
	defer cancel()
	old := make(map[string]*counts)
	if book := s.rules.Load(); book != nil {
		for _, r := range book.all {
			old[r.name] = r.counts
		}
	}
	book := &ruleBook{read: time.Now()}
	in := struct {
		NextToken string `json:",omitempty"`
	}{}
	for range 100 {
		var out struct {
			SamplingRuleRecords []struct{ SamplingRule centralRule }
			NextToken           string
		}
		if err := s.api.Call(ctx, "/GetSamplingRules", in, &out); err != nil {
			return err
		}
		for _, record := range out.SamplingRuleRecords {
			if r := record.SamplingRule.rule(old); r != nil {
				book.all = append(book.all, r)
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == "" || len(book.all) >= mostRules {
			break
		}
	}
	book.all = book.all[:min(len(book.all), mostRules)]
	slices.SortFunc(book.all, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.name, b.name))
	})
	s.rules.Store(book)
	return nil
}

// A centralRule is a rule as X-Ray has it.
type centralRule struct {
	RuleName, ServiceName, ServiceType, Host, HTTPMethod, URLPath, ResourceARN string
	Priority                                                                   int
	ReservoirSize                                                              int64
	FixedRate                                                                  float64
	Attributes                                                                 map[string]string
}

// rule is nil of one that cannot be meant for weir: of a resource of AWS's own, or by attributes.
func (c *centralRule) rule(old map[string]*counts) *rule {
	if c.ResourceARN != "" && c.ResourceARN != "*" || c.ServiceType != "" && c.ServiceType != "*" || len(c.Attributes) > 0 {
		return nil
	}
	r := &rule{
		name: c.RuleName, service: cmp.Or(c.ServiceName, "*"), method: cmp.Or(c.HTTPMethod, "*"), host: cmp.Or(c.Host, "*"), path: cmp.Or(c.URLPath, "*"),
		priority: c.Priority, reservoir: c.ReservoirSize, counts: old[c.RuleName],
	}
	if r.counts == nil {
		r.counts = new(counts)
		r.rate.Store(shareOf(c.FixedRate)) // later it is what the targets say
	}
	return r
}

func shareOf(rate float64) uint64 { return uint64(min(max(rate, 0), 1) * (1 << 32)) }

// A statistic is what the centre is told of a rule.
type statistic struct {
	RuleName, ClientID                      string
	Timestamp                               int64
	RequestCount, SampledCount, BorrowCount int64
}

// tell tells what has come, and reads what is to be kept of what comes.
func (s *Sampler) tell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rulesAnswer)
	defer cancel()
	book := s.rules.Load()
	var in struct{ SamplingStatisticsDocuments []statistic }
	by := make(map[string]*counts)
	for _, r := range book.all {
		by[r.name] = r.counts
		if n := r.requests.Swap(0); n > 0 {
			in.SamplingStatisticsDocuments = append(in.SamplingStatisticsDocuments, statistic{r.name, s.client, time.Now().Unix(), n, r.sampled.Swap(0), r.borrowed.Swap(0)})
		}
	}
	if len(in.SamplingStatisticsDocuments) == 0 {
		return nil
	}
	var out struct {
		LastRuleModification    float64
		SamplingTargetDocuments []struct {
			RuleName          string
			FixedRate         float64
			ReservoirQuota    *int64
			ReservoirQuotaTTL float64
		}
	}
	if err := s.api.Call(ctx, "/SamplingTargets", in, &out); err != nil {
		for _, told := range in.SamplingStatisticsDocuments { // they are told the next time
			c := by[told.RuleName]
			c.requests.Add(told.RequestCount)
			c.sampled.Add(told.SampledCount)
			c.borrowed.Add(told.BorrowCount)
		}
		return err
	}
	for _, target := range out.SamplingTargetDocuments {
		c := by[target.RuleName]
		if c == nil {
			continue
		}
		c.rate.Store(shareOf(target.FixedRate))
		if target.ReservoirQuota != nil {
			c.quota.Store(*target.ReservoirQuota)
			c.quotaEnds.Store(int64(target.ReservoirQuotaTTL * 1e9))
		}
	}
	if time.Unix(int64(out.LastRuleModification), 0).After(book.read) {
		return s.read(ctx)
	}
	return nil
}
