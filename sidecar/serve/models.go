package serve

import (
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/runs"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/llm/tokens"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/observe/why"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// models is the state that upstreams with language models share and keep across reloads: answers, the state of tiers,
// and learned token counts.
type models struct {
	options weir.Options
	store   fleet.Store // nil if the file names none
	veil    *veil.Veil
	metrics *weirprom.Models
	cloud   *weircw.Exporter // nil if CloudWatch is not configured
	log     *slog.Logger

	tokens   tokens.Estimator
	ledger   *price.Ledger
	runs     runs.Table
	mu       sync.Mutex     // guards the following fields, which the status page reads
	callers  *weir.Upstream // nil if callers have no limits
	caches   map[string]kept
	cascades map[string]*cascade.Cascade
	tables   map[tableUse]*tableReader // static answers
	answers  map[string]keptAnswers    // stored answers of upstreams with stale_if_error
	calls    *why.Keeper
}

// begin sets the dependencies of models.
func (m *models) begin(s *Server, events weir.Events, registry prometheus.Registerer) {
	m.options, m.store, m.veil, m.log = weir.Options{Events: events, Fleet: s.fleet}, s.store, s.veil, s.log
	m.ledger = price.NewLedger(mostAccounts)
	m.metrics = weirprom.NewModels(registry, m.used, m.tiers)
	if m.cloud = s.tells.metrics; m.cloud != nil {
		m.cloud.Cascades(func() []string { return chainsDown(m.tiers()) })
	}
}

// mostAccounts limits how many combinations of tenant, user and model the ledger distinguishes.
const mostAccounts = 2000

// apply sets the dialects of a file's language models, on top of their existing dialects. On error nothing changes.
func (m *models) apply(file *config.File, env func(string) (string, bool)) error {
	fresh, err := m.put(file, env)
	if err == nil {
		beginTables(fresh)
	}
	return err
}

// put is apply without reading new tables, so that the status page does not have to wait for them.
func (m *models) put(file *config.File, env func(string) (string, bool)) (fresh map[tableUse]*tableReader, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(file.LLM)+len(file.Counted) == 0 {
		m.uncount()
		share := m.shareCaches(file)
		m.forget(file)
		return nil, m.keepAnswers(file, share)
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
	return next.fresh, m.keepAnswers(file, next.share)
}

// forget closes the caches of removed upstreams.
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

// close ends background work.
func (m *models) close() {
	for _, k := range m.caches {
		_ = k.cache.Close()
	}
	for _, r := range m.tables {
		r.close()
	}
}

// look returns the state of a language model's upstream, or nil for any other upstream.
func (m *models) look(upstream string) *status.Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	tiers, k := m.cascades[upstream], m.caches[upstream]
	if tiers == nil && k.cache == nil {
		return nil
	}
	return status.ModelOf(tiers, k.cache, k.similar)
}
