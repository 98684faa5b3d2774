package serve

import (
	"cmp"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/cascade/cache/recordblob"
	"github.com/seed1158cd35/weir/cascade/similar"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/llm/tokens"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// models is what the upstreams that are language models share, and what they keep when
// the file is read again: answers, what is known of tiers, what was learnt of tokens.
type models struct {
	options weir.Options
	store   fleet.Store // nil if the file names none
	veil    *veil.Veil
	metrics *weirprom.Models
	cloud   *weircw.Exporter // nil if nothing is published to CloudWatch
	log     *slog.Logger

	tokens   tokens.Estimator
	ledger   *price.Ledger
	mu       sync.Mutex     // of what follows, which the status page reads
	callers  *weir.Upstream // nil if callers may have what there is
	caches   map[string]kept
	cascades map[string]*cascade.Cascade
	tables   map[tableUse]*tableReader // of static answers
}

// begin says what the models live with.
func (m *models) begin(s *Server, events weir.Events, registry prometheus.Registerer) {
	m.options, m.store, m.veil, m.log = weir.Options{Events: events, Fleet: s.fleet}, s.store, s.veil, s.log
	m.ledger = price.NewLedger(mostAccounts)
	m.metrics = weirprom.NewModels(registry, m.used, m.tiers)
	if m.cloud = s.tells.metrics; m.cloud != nil {
		m.cloud.Cascades(func() []string { return chainsDown(m.tiers()) })
	}
}

// mostAccounts bounds how many combinations of tenant, user and model are told apart.
const mostAccounts = 2000

// used is what has been used of the models.
func (m *models) used() iter.Seq[weirprom.ModelUse] {
	return func(yield func(weirprom.ModelUse) bool) {
		for who, t := range m.ledger.All() {
			u := weirprom.ModelUse{
				Tenant: who.Tenant, User: who.User, Model: who.Model, Calls: t.Calls, Cost: t.Cost.Dollars(),
				Input: t.Input, Output: t.Output, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite,
			}
			if !yield(u) {
				return
			}
		}
	}
}

// tiers are the models of cascades, and whether they are asked.
func (m *models) tiers() iter.Seq[weirprom.TierState] {
	m.mu.Lock()
	cascades := maps.Clone(m.cascades)
	m.mu.Unlock()
	return func(yield func(weirprom.TierState) bool) {
		for upstream, c := range cascades {
			for _, v := range c.View() {
				if !v.Instant && !yield(weirprom.TierState{Upstream: upstream, Tier: v.Tier, Open: v.Phase != breaker.Closed}) {
					return
				}
			}
		}
	}
}

// chainsDown are the upstreams none of whose models is asked.
func chainsDown(tiers iter.Seq[weirprom.TierState]) (down []string) {
	asked := make(map[string]bool)
	for t := range tiers {
		asked[t.Upstream] = asked[t.Upstream] || !t.Open
	}
	for upstream, some := range asked {
		if !some {
			down = append(down, upstream)
		}
	}
	return down
}

// events is what metrics hear of dialects.
func (m *models) events() gateway.Events {
	return gateway.Events{Answered: m.answered, Used: m.spent}
}

func (m *models) answered(a gateway.Answered) {
	m.metrics.Answered(a.Upstream, a.Tier, a.Degraded, a.Cache, a.Took)
	if m.cloud != nil {
		m.cloud.Answered(weircw.Answer{Upstream: a.Upstream, Tier: a.Tier, Degraded: a.Degraded, Cache: a.Cache})
	}
}

// spent tells CloudWatch what an answer took; Prometheus reads the ledger.
func (m *models) spent(u gateway.Used) {
	if m.cloud != nil {
		m.cloud.Used(u.Upstream, u.Usage.Input, u.Usage.Output, int64(u.Cost))
	}
}

// changed tells that the breaker of a tier has changed its phase.
func (m *models) changed(upstream string, c cascade.Change) {
	m.metrics.TierChanged(upstream, c.Tier, c.To.String())
	m.log.Info("tier changed", "upstream", upstream, "tier", c.Tier, "from", c.From.String(), "to", c.To.String(), "why", c.Why.String(), "code", c.Code, "for", c.For.String())
}

// kept is a cache and what it was made for.
type kept struct {
	config  config.Cache
	cache   *cache.Cache
	similar *similar.Index // nil if questions are not compared
}

// apply gives the upstreams of a file that are language models their dialects, over those
// that they have. If something is wrong, all stays as it was.
func (m *models) apply(file *config.File, env func(string) (string, bool)) error {
	fresh, err := m.put(file, env)
	if err == nil {
		beginTables(fresh)
	}
	return err
}

// put is apply but for tables that are new, which are not read yet: the status page need not wait for them.
func (m *models) put(file *config.File, env func(string) (string, bool)) (fresh map[tableUse]*tableReader, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(file.LLM)+len(file.Counted) == 0 {
		m.uncount()
		m.shareCaches(file)
		m.forget(file)
		return nil, nil
	}
	next, err := m.prepare(file, env)
	if err != nil {
		return nil, err
	}
	var put []func() error
	for i := range file.Upstreams {
		u := &file.Upstreams[i]
		if file.Counted[u.Name] && next.callers != nil {
			u.Callers = next.callers
		}
		if c, ok := file.LLM[u.Name]; ok {
			fitted, err := next.dialect(u, c)
			if err != nil {
				return nil, fmt.Errorf("upstream %s: llm: %w", u.Name, err)
			}
			put = append(put, fitted)
		}
	}
	if err := m.count(next.callers, file.Callers); err != nil {
		return nil, fmt.Errorf("callers: %w", err)
	}
	next.share = m.shareCaches(file)
	for _, fitted := range put {
		if err := fitted(); err != nil {
			return nil, fmt.Errorf("llm: %w", err)
		}
	}
	m.forget(file)
	maps.Copy(m.tables, next.fresh)
	return next.fresh, nil
}

// A fitting is what is prepared for all dialects of a file.
type fitting struct {
	*models
	file    *config.File
	env     func(string) (string, bool)
	prices  price.Table
	callers *gateway.Callers // nil if callers may have what there is
	share   map[string]int64 // the memory of caches, by upstream
	fresh   map[tableUse]*tableReader
}

func (m *models) prepare(file *config.File, env func(string) (string, bool)) (*fitting, error) {
	f := &fitting{models: m, file: file, env: env, fresh: make(map[tableUse]*tableReader)}
	var err error
	if f.prices, err = readPrices(file.Prices); err != nil {
		return nil, err
	}
	if file.Callers != nil {
		keys, err := callerKeys(file.Callers, env, m.veil)
		if err == nil {
			err = file.Callers.Policy.Validate()
		}
		if err != nil {
			return nil, fmt.Errorf("callers: %w", err)
		}
		f.callers = &gateway.Callers{Keys: keys, Consumed: consumed(file.Callers)}
	}
	if m.caches == nil {
		m.caches, m.cascades, m.tables = make(map[string]kept), make(map[string]*cascade.Cascade), make(map[tableUse]*tableReader)
	}
	return f, nil
}

// readPrices is the table of a file laid over that which weir knows.
func readPrices(file string) (price.Table, error) {
	if file == "" {
		return price.BuiltIn(), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return price.Table{}, fmt.Errorf("prices: %w", err)
	}
	own, err := price.Parse(file, data)
	return own.Over(price.BuiltIn()), err
}

// dialect reads all that the dialect of an upstream needs. What it returns puts it in force.
func (f *fitting) dialect(u *config.Upstream, c config.LLM) (put func() error, err error) {
	o := gateway.Options{
		Name: u.Name, Family: c.Family, Model: c.DefaultModel, Inner: u.Dialect, Origin: f.origin, Tokens: &f.tokens, Prices: f.prices, Ledger: f.ledger,
		FirstContent: c.FirstContent, Idle: c.Idle, Total: c.Total, Hold: c.HoldFor, Patience: c.Patience, MaxBody: u.MaxBody, Pass: u.Full == proxy.FullPass, Keys: u.Keys, Veil: f.veil,
		Events: f.events(),
	}
	if c.Family == llm.OpenAI || c.Family == llm.Responses {
		f.tokens.Load(c.Family, "gpt-5") // or the first call would wait for it
	}
	if c.KeyEnv != "" {
		if o.Key, err = secretOf(c.KeyEnv, f.env); err != nil {
			return nil, fmt.Errorf("key_env: %w", err)
		}
	}
	if c.Callers {
		o.Callers = f.callers
	}
	if u.Priority != nil {
		o.Priority = u.Priority.Priority()
	}
	var plan cascade.Config
	if c.Cascade != nil {
		if plan, o.Tiers, err = f.tiersOf(c.Cascade); err != nil {
			return nil, fmt.Errorf("cascade: %w", err)
		}
		if m := c.Cascade.Maintenance; m.On {
			o.Maintenance = &gateway.Maintenance{Message: m.Message, Reduced: m.Reduced}
		}
	}
	return func() (err error) {
		if c.Cache != nil {
			if o.Cache, o.Similar, err = f.cache(u.Name, *c.Cache); err != nil {
				return err
			}
			o.Any, o.Loose = c.Cache.AnyTemperature, c.Cache.Loose
		}
		if c.Cascade != nil {
			if o.Cascade, err = f.cascade(u.Name, plan); err != nil {
				return err
			}
		}
		f.beginTiers(u.Name, plan)
		d, err := gateway.New(o)
		if err == nil {
			u.Dialect = d
		}
		return err
	}, nil
}

// beginTiers shows the tiers of an upstream before one of them has answered.
func (f *fitting) beginTiers(upstream string, plan cascade.Config) {
	f.metrics.Begin(upstream, "primary")
	for _, t := range plan.Tiers {
		f.metrics.Begin(upstream, t.Name)
	}
}

// origin is where an upstream is.
func (f *fitting) origin(upstream string) (at string, own bool) {
	for i := range f.file.Upstreams {
		if u := &f.file.Upstreams[i]; u.Name == upstream {
			_, signed := f.file.AWS[upstream]
			return u.URL.Scheme + "://" + u.URL.Host, signed || f.file.LLM[upstream].KeyEnv != ""
		}
	}
	return "", false
}

// cache is that of an upstream: the one that it has if nothing has changed.
func (f *fitting) cache(upstream string, c config.Cache) (*cache.Cache, *similar.Index, error) {
	m, share := f.models, f.share[upstream]
	questions := int64(0)
	if c.Similar > 0 {
		questions = share / 16
		share -= questions
	}
	if k, ok := m.caches[upstream]; ok && reflect.DeepEqual(k.config, c) {
		k.cache.Resize(share)
		if k.similar != nil {
			k.similar.Resize(questions)
		}
		return k.cache, k.similar, nil
	}
	next := kept{config: c}
	if c.Similar > 0 {
		var err error
		if next.similar, err = similar.New(similar.Options{Threshold: c.Similar, MaxBytes: max(1, questions)}); err != nil {
			return nil, nil, err
		}
	}
	o := cache.Options{TTL: c.TTL, StaleWhileRevalidate: c.Revalidate, StaleIfError: c.IfError, MaxBytes: share}
	if m.store != nil {
		o.Shared = recordblob.New(m.store, recordblob.Options{Group: "cache/" + upstream})
	}
	var err error
	if next.cache, err = cache.New(o); err != nil {
		return nil, nil, err
	}
	if k, ok := m.caches[upstream]; ok {
		_ = k.cache.Close()
	}
	m.caches[upstream] = next
	return next.cache, next.similar, nil
}

// tiersOf reads what the tiers of a cascade need.
func (f *fitting) tiersOf(c *config.Cascade) (cascade.Config, []gateway.Tier, error) {
	plan := cascade.Config{Deadline: cmp.Or(c.Deadline, defaultDeadline), Tiers: []cascade.TierConfig{{Name: "primary", Confidence: 1}}}
	tiers := make([]gateway.Tier, 1, len(c.Tiers)+1)
	for _, t := range c.Tiers {
		own := gateway.Tier{Upstream: t.Upstream, Model: t.Model, Cached: t.Cached, Messages: t.Messages, Contact: t.Contact}
		if t.Static() {
			var err error
			if own.Answers, err = f.book(t); err != nil {
				return plan, nil, err
			}
		}
		tiers = append(tiers, own)
		plan.Tiers = append(plan.Tiers, cascade.TierConfig{
			Name: t.Name, Confidence: t.Confidence, Timeout: t.Timeout, Instant: t.Cached || t.Static() || len(t.Messages) > 0,
		})
	}
	return plan, tiers, plan.Validate()
}

// cascade is that of an upstream. What is known of its tiers stays known.
func (m *models) cascade(upstream string, plan cascade.Config) (*cascade.Cascade, error) {
	if old := m.cascades[upstream]; old != nil {
		return old, old.Set(plan)
	}
	made, err := cascade.New(plan, cascade.Options{Changed: func(c cascade.Change) { m.changed(upstream, c) }})
	if err == nil {
		m.cascades[upstream] = made
	}
	return made, err
}

const defaultDeadline = time.Minute

// book is the answers of a tier: those of a file read anew, those of a table by its reader.
func (f *fitting) book(t config.Tier) (*answers.Book, error) {
	if t.Table != nil {
		r, err := f.table(&t)
		if err != nil {
			return nil, err
		}
		return r.Book(), nil
	}
	b := &answers.Book{Threshold: t.Threshold}
	return b, b.Load(t.Answers)
}

// forget closes the caches of upstreams that are gone.
func (m *models) forget(file *config.File) {
	maps.DeleteFunc(m.caches, func(name string, k kept) bool {
		c, ok := file.LLM[name]
		gone := !ok || c.Cache == nil
		if gone {
			_ = k.cache.Close()
		}
		return gone
	})
	m.refreshTables(file)
	maps.DeleteFunc(m.cascades, func(name string, _ *cascade.Cascade) bool { return file.LLM[name].Cascade == nil })
}

// close ends what goes on in the background.
func (m *models) close() {
	for _, k := range m.caches {
		_ = k.cache.Close()
	}
	for _, r := range m.tables {
		r.close()
	}
}

// look is the state of an upstream that is a language model, nil of any other.
func (m *models) look(upstream string) *status.Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	tiers, k := m.cascades[upstream], m.caches[upstream]
	if tiers == nil && k.cache == nil {
		return nil
	}
	return status.ModelOf(tiers, k.cache, k.similar)
}
