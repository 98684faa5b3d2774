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
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/llm/tokens"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/observe/why"
	"github.com/seed1158cd35/weir/sidecar/config"
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
	answers  map[string]keptAnswers    // earlier answers of upstreams with stale_if_error
	calls    *why.Keeper
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
