package learn

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Prometheus is a server with weir's metrics.
type Prometheus struct {
	URL    string       // may contain a user and a password
	Token  string       // sent as a bearer token; "" means none
	Job    string       // scrape job of weir; "" means weir
	Client *http.Client // nil means http.DefaultClient
}

const (
	pointsAtOnce = 10000    // Prometheus returns at most 11,000 points of a series
	mostAnswer   = 64 << 20 // bytes
	mostSeries   = 2000
	mostValue    = 1e15            // of a point; weir counts no larger values
	answers      = 2 * time.Minute // longest time for one query, as in Prometheus
)

// Prometheus reads weir's metrics of all upstreams.
func (l *Learner) Prometheus(ctx context.Context, p Prometheus, span Span) error {
	span = span.withDefaults()
	if err := span.check(); err != nil {
		return err
	}
	if p.Job == "" {
		p.Job = "weir"
	}
	over := fmt.Sprintf("{job=%q}[%ds]", p.Job, span.Step/time.Second)
	steps := make(map[place]map[int64]*Step)
	at := func(upstream, operation string, t int64) *Step {
		of := steps[place{upstream, operation}]
		if of == nil {
			of = make(map[int64]*Step)
			steps[place{upstream, operation}] = of
		}
		if of[t] == nil {
			of[t] = &Step{Upstream: upstream, Operation: operation, Long: span.Step, At: time.Unix(t, 0).Add(-span.Step)}
		}
		return of[t]
	}
	err := p.each(ctx, "sum by (upstream, operation, class) (increase(weir_attempts_total"+over+"))", span, func(labels map[string]string, t int64, v float64) {
		for _, operation := range []string{"", labels["operation"]} {
			s := at(labels["upstream"], operation, t)
			if labels["class"] == outcome.Throttled.String() {
				s.Throttled += v
			} else {
				s.Taken += v
			}
			if labels["operation"] == "" {
				break
			}
		}
	})
	if err == nil {
		err = p.each(ctx, "sum by (upstream) (increase(weir_attempt_duration_seconds_sum"+over+"))", span, func(labels map[string]string, t int64, v float64) {
			at(labels["upstream"], "", t).Busy += time.Duration(min(v, 1e9) * float64(time.Second))
		})
	}
	if err != nil {
		return fmt.Errorf("Prometheus: %w", err)
	}
	for _, of := range slices.SortedFunc(maps.Keys(steps), place.compare) {
		for _, t := range slices.Sorted(maps.Keys(steps[of])) {
			l.Step(*steps[of][t])
		}
	}
	return nil
}

type place struct{ upstream, operation string }

func (p place) compare(q place) int {
	if c := strings.Compare(p.upstream, q.upstream); c != 0 {
		return c
	}
	return strings.Compare(p.operation, q.operation)
}

// each calls f for the points of all series that a query returns in the span.
func (p *Prometheus) each(ctx context.Context, query string, span Span, f func(labels map[string]string, at int64, v float64)) error {
	for from := span.From.Add(span.Step); !from.After(span.To); from = from.Add(pointsAtOnce * span.Step) {
		to := from.Add((pointsAtOnce - 1) * span.Step)
		if to.After(span.To) {
			to = span.To
		}
		if err := p.query(ctx, query, from, to, span.Step, f); err != nil {
			return err
		}
	}
	return nil
}

// A matrix is the response to a range query.
type matrix struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		Result []struct {
			Metric map[string]string    `json:"metric"`
			Values [][2]json.RawMessage `json:"values"`
		} `json:"result"`
	} `json:"data"`
}

func (p *Prometheus) query(ctx context.Context, query string, from, to time.Time, step time.Duration, f func(map[string]string, int64, float64)) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	at, err := url.Parse(p.URL)
	if err != nil {
		return err
	}
	at = at.JoinPath("api/v1/query_range")
	at.RawQuery = url.Values{"query": {query}, "start": {strconv.FormatInt(from.Unix(), 10)}, "end": {strconv.FormatInt(to.Unix(), 10)}, "step": {strconv.Itoa(int(step / time.Second))}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	if p.Token != "" {
		r.Header.Set("Authorization", "Bearer "+p.Token)
	}
	client := p.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	switch {
	case err != nil:
		return err
	case len(body) > mostAnswer:
		return fmt.Errorf("its response is larger than %d MiB: use a shorter time or longer steps", mostAnswer>>20)
	}
	var m matrix
	if err := json.Unmarshal(body, &m); err != nil || m.Status != "success" {
		return fmt.Errorf("responds with %s: %.200q", resp.Status, m.Error)
	}
	if len(m.Data.Result) > mostSeries {
		return fmt.Errorf("the response has too many series: %d", len(m.Data.Result))
	}
	for _, series := range m.Data.Result {
		for _, point := range series.Values {
			if t, v, ok := pointOf(point); ok {
				f(series.Metric, t, v)
			}
		}
	}
	return nil
}

// pointOf returns a time in seconds and a number. It returns false for invalid points.
func pointOf(p [2]json.RawMessage) (at int64, v float64, ok bool) {
	var when float64
	var text string
	if json.Unmarshal(p[0], &when) != nil || json.Unmarshal(p[1], &text) != nil {
		return 0, 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return int64(when), v, err == nil && v >= 0 && v < mostValue && when > 0 && when < 1e11
}
