package serve

import (
	"fmt"
	"os"

	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/internal/runs"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A fitting holds the preparations for all dialects of a file.
type fitting struct {
	*models
	file    *config.File
	env     func(string) (string, bool)
	prices  price.Table
	callers *gateway.Callers // nil if callers have no limits
	share   map[string]int64 // memory of caches in bytes, by upstream
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
		if _, named := keys[runs.Scope]; named {
			f.callers.Runs = &m.runs
		}
	}
	if m.caches == nil {
		m.caches, m.cascades, m.tables = make(map[string]kept), make(map[string]*cascade.Cascade), make(map[tableUse]*tableReader)
	}
	return f, nil
}

// readPrices returns the built-in price table, overridden by the file's.
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

// dialect prepares the dialect of an upstream. put applies it.
func (f *fitting) dialect(u *config.Upstream, c config.LLM) (put func() error, err error) {
	o := gateway.Options{
		Name: u.Name, Family: c.Family, Model: c.DefaultModel, Inner: u.Dialect, Origin: f.origin, Tokens: &f.tokens, Prices: f.prices, Ledger: f.ledger, Dollars: f.file.Budgets(),
		FirstContent: c.FirstContent, Idle: c.Idle, Total: c.Total, Hold: c.HoldFor, Patience: c.Patience, MaxBody: u.MaxBody, Pass: u.Full == proxy.FullPass, Keys: u.Keys, Veil: f.veil,
		Runs:   u.Policy.Fair.By == gateway.Caller,
		Events: f.events(),
	}
	if c.Family == llm.OpenAI || c.Family == llm.Responses {
		f.tokens.Load(c.Family, "gpt-5") // otherwise the first call would wait for it
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
			o.TierWait = c.Cascade.Wait
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

// origin returns the origin of an upstream, and whether weir adds credentials there.
func (f *fitting) origin(upstream string) (at string, own bool) {
	for i := range f.file.Upstreams {
		if u := &f.file.Upstreams[i]; u.Name == upstream {
			_, signed := f.file.AWS[upstream]
			return u.URL.Scheme + "://" + u.URL.Host, signed || f.file.LLM[upstream].KeyEnv != ""
		}
	}
	return "", false
}
