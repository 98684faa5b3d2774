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

// OpenAnswers is the table of a tier's static answers, of which none are read yet. Credentials are found as the SDKs find them.
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

// A tableReader reads a table again and again, until it is closed.
type tableReader struct {
	*answertable.Table
	of    *models
	name  string
	every time.Duration

	now    chan struct{} // asks for a read
	cancel context.CancelFunc
	wg     sync.WaitGroup
	told   string // what was logged last, as kindOf has it
}

// firstRead bounds how long a start or a reload waits for the answers of all tables that are new; readTime one read after that.
const (
	firstRead = 5 * time.Second
	readTime  = time.Minute
)

// table is the reader of a tier's table: the one that there is, or a new one, which beginTables begins. That it cannot be read
// fails no start.
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

// beginTables reads tables for the first time, all at once, and has them read again and again from then on.
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

// read reads the table once, and says so in the log if it went otherwise than before.
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

// kindOf tells how a read went from another way that one goes. The text of an error does not: the SDK's has the number of the
// request, which is another one each time.
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

// refreshTables has the tables of a file read again, and ends the readers of others.
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

// tryAnswers reads the tables of static answers.
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

// warnsOf is what is wrong with rows, one warning for each.
func warnsOf(wrong answers.Errors) (all []string) {
	for _, c := range wrong {
		all = append(all, "left out: "+c.Error())
	}
	return all
}
