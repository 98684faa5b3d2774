package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/cascade/answers/answertable"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// OpenAnswers returns the table of a tier's static answers, not yet read. It finds credentials as the SDKs do.
func OpenAnswers(c *config.Answers, threshold float64) (*answertable.Table, error) {
	cfg, err := awsDefaults(c.Region)
	if err != nil {
		return nil, fmt.Errorf("answers: table %s: %w", c.Table, err)
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if c.Endpoint != "" {
			o.BaseEndpoint = &c.Endpoint
		}
	})
	return answertable.New(client, c.Table, threshold), nil
}

// A tableUse is a table and how it is read.
type tableUse struct {
	config.Answers
	threshold float64
}

func useOf(t *config.Tier) tableUse { return tableUse{*t.Table, t.Threshold} }

// A tableReader reads a table periodically until it is closed.
type tableReader struct {
	*answertable.Table
	of    *models
	name  string
	every time.Duration

	now    chan struct{} // requests a read
	cancel context.CancelFunc
	wg     sync.WaitGroup
	told   string // the last logged result, as returned by kindOf
}

// firstRead is how long a start or a reload waits for the answers of all new tables. readTime limits each later read.
const (
	firstRead = 5 * time.Second
	readTime  = time.Minute
)

// table returns the reader of a tier's table, either the existing one or a new one, which beginTables starts. An
// unreadable table does not fail the start.
func (f *fitting) table(t *config.Tier) (*tableReader, error) {
	use := useOf(t)
	if r := cmp.Or(f.models.tables[use], f.fresh[use]); r != nil {
		return r, nil
	}
	made, err := OpenAnswers(t.Table, t.Threshold)
	if err != nil {
		return nil, err
	}
	r := &tableReader{Table: made, of: f.models, name: t.Table.Table, every: use.Every, now: make(chan struct{}, 1)}
	f.fresh[use] = r
	return r, nil
}

// beginTables reads new tables concurrently and starts their periodic reads.
func beginTables(fresh map[tableUse]*tableReader) {
	first, over := context.WithTimeout(context.Background(), firstRead)
	defer over()
	var reads sync.WaitGroup
	for _, r := range fresh {
		reads.Go(func() { r.read(first, firstRead) })
	}
	reads.Wait()
	for _, r := range fresh {
		ctx, cancel := context.WithCancel(context.Background())
		r.cancel = cancel
		r.wg.Go(func() { r.run(ctx, r.every) })
	}
}

func (r *tableReader) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.now:
		case <-ctx.Done():
			return
		}
		r.read(ctx, readTime)
	}
}

// read reads the table once, and logs a result that differs from the last one.
func (r *tableReader) read(ctx context.Context, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	wrong, err := r.Read(ctx)
	kind := kindOf(wrong, err)
	if kind == r.told || r.of.log == nil {
		return
	}
	s := r.State()
	switch r.told = kind; {
	case err != nil:
		r.of.log.Warn("static answers: cannot read the table; the earlier answers stay in force", "table", r.name, "error", observe.Error(err), "answers", s.Entries)
	case len(wrong) > 0:
		r.of.log.Warn("static answers: invalid rows were skipped", "table", r.name, "mistakes", len(wrong), "first", wrong[0].Error(), "answers", s.Entries)
	default:
		r.of.log.Info("static answers: the table was read", "table", r.name, "answers", s.Entries)
	}
}

// kindOf classifies the result of a read. It does not use the text of SDK errors, because that contains the request ID.
func kindOf(wrong answers.Errors, err error) string {
	if said, ok := errors.AsType[smithy.APIError](err); ok {
		return "not read: " + said.ErrorCode()
	}
	switch {
	case err != nil:
		return "not read"
	case len(wrong) > 0:
		return wrong.Error()
	}
	return ""
}

func (r *tableReader) close() {
	r.cancel()
	r.wg.Wait()
}

// refreshTables starts a read of the tables in a file, and closes the readers of all other tables.
func (m *models) refreshTables(file *config.File) {
	used := make(map[tableUse]bool)
	for _, l := range file.LLM {
		if l.Cascade == nil {
			continue
		}
		for i := range l.Cascade.Tiers {
			if t := &l.Cascade.Tiers[i]; t.Table != nil {
				used[useOf(t)] = true
			}
		}
	}
	for use, r := range m.tables {
		if !used[use] {
			delete(m.tables, use)
			r.close()
			continue
		}
		select {
		case r.now <- struct{}{}:
		default:
		}
	}
}

// tryAnswers returns the trials that read the tables of static answers.
func tryAnswers(file *config.File) (all []trial) {
	for _, u := range file.Upstreams {
		c := file.LLM[u.Name].Cascade
		if c == nil {
			continue
		}
		for _, t := range c.Tiers {
			if t.Table == nil {
				continue
			}
			all = append(all, trial{"answers of " + u.Name, func(ctx context.Context) (string, error) {
				table, err := OpenAnswers(t.Table, t.Threshold)
				if err != nil {
					return "", err
				}
				wrong, err := table.Read(ctx)
				if err != nil {
					return "", err
				}
				said := fmt.Sprintf("table %s has %d answers", t.Table.Table, table.State().Entries)
				if len(wrong) > 0 {
					return "", &warning{said, warnsOf(wrong)}
				}
				return said, nil
			}})
		}
	}
	return all
}

// warnsOf returns one warning for each invalid row.
func warnsOf(wrong answers.Errors) (all []string) {
	for _, c := range wrong {
		all = append(all, "left out: "+c.Error())
	}
	return all
}
