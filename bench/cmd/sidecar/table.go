package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// A row is one variant of a measurement and its result in each round.
type row struct {
	what, way   string
	connections int
	address     string
	story       story
	process     *process // the process in the middle; nil without one
	floor       bool     // weir is measured relative to it
	figures     []figure
}

// rows returns all rows. The rows of a measurement are adjacent, the floor first.
func (s *stage) rows() (all []*row, err error) {
	for _, n := range []int{1, 64} {
		add := func(what, way, address string, of story, p *process, floor bool) {
			all = append(all, &row{what: what, way: way, connections: n, address: address, story: of, process: p, floor: floor})
		}
		s.passing(add)
		s.deciding(add)
		s.models(add)
		if err := s.forEnvoy(add); err != nil {
			return nil, err
		}
	}
	return all, nil
}

type adder func(what, way, address string, of story, p *process, floor bool)

// passing adds rows of forwarded and signed requests.
func (s *stage) passing(add adder) {
	add("pass", "direct", s.upstream.address, get("/a/b?c=d", "200"), nil, false)
	add("pass", "bare", s.bare.address, get("/a/b?c=d", "200"), s.bare, true)
	add("pass", "bare, GOGC=800", s.spared.address, get("/a/b?c=d", "200"), s.spared, false)
	if s.nginx != nil {
		add("pass", "nginx", s.nginx.address, get("/a/b?c=d", "200"), s.nginx, false)
	}
	for _, w := range s.weirs {
		add("pass", w.name, w.address, get("/api/a/b?c=d", "200"), w, false)
	}
	add("sign", "bare", s.bare.address, put("/bucket/a/key"), s.bare, false)
	for i, w := range s.weirs {
		add("sign", w.name+", plain", w.address, put("/api/bucket/a/key"), w, i == 0)
		add("sign", w.name+", signed anew", w.address, put("/signed/bucket/a/key"), w, false)
	}
}

// deciding adds rows of responses that weir creates itself.
func (s *stage) deciding(add adder) {
	add("refuse", "bare handler", s.answer.address, get("/refuse", "200"), s.answer, true)
	for _, w := range s.weirs {
		add("refuse", w.name, w.address, get("/tight/a/b?c=d", "429"), w, false)
	}
	add("decide", "bare handler", s.answer.address, pair, s.answer, true)
	for _, w := range s.weirs {
		add("decide", w.name, w.decides, pair, w, false)
	}
}

// models adds rows of chats and streams.
func (s *stage) models(add adder) {
	add("llm", "bare, body gathered", s.gather.address, chat("/v1/chat/completions"), s.gather, true)
	for _, w := range s.weirs {
		add("llm", w.name, w.address, chat("/chat/v1/chat/completions"), w, false)
	}
	for _, of := range []struct {
		what string
		of   func(path string) story
	}{{"first event", first}, {"event", passing}} {
		add(of.what, "direct", s.upstream.address, of.of("/v1/chat/completions"), nil, false)
		add(of.what, "bare", s.bare.address, of.of("/v1/chat/completions"), s.bare, true)
		for _, w := range s.weirs {
			add(of.what, w.name, w.address, of.of("/api/v1/chat/completions"), w, false)
			add(of.what, w.name+", llm", w.address, of.of("/chat/v1/chat/completions"), w, false)
		}
	}
}

// forEnvoy adds rows of decisions for Envoy. Here connections are the number of callers, which share one connection.
func (s *stage) forEnvoy(add adder) error {
	type way struct {
		name, at string
		p        *process
	}
	ways := []way{{"bare service", s.grpc.address, s.grpc}}
	for _, w := range s.weirs {
		ways = append(ways, way{w.name + ", memory", w.grpc, w})
	}
	for _, w := range s.sharing {
		ways = append(ways, way{w.name + ", Redis", w.grpc, w})
	}
	for i, w := range ways {
		of, err := envoy(w.at)
		if err != nil {
			return err
		}
		add("rls", w.name, s.upstream.address, of, w.p, i == 0)
	}
	return nil
}

// measure measures every row in every round.
func (s *stage) measure(rounds int, each time.Duration, only string) (all []*row, err error) {
	if all, err = s.rows(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r *row) bool {
		return !slices.ContainsFunc(strings.Split(only, ","), func(what string) bool { return strings.HasPrefix(r.what, what) })
	})
	for _, w := range s.weirs {
		if err := once(w.address, get("/tight/a/b?c=d", "200")); err != nil { // until the limit is used up
			return nil, err
		}
	}
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		for _, r := range all {
			f, err := load(r.address, r.story, r.connections, each, r.process)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %d connections: %w", r.what, r.way, r.connections, err)
			}
			r.figures = append(r.figures, f)
		}
	}
	return all, nil
}

// median returns the median of a number over the rounds.
func (r *row) median(of func(figure) float64) float64 {
	all := make([]float64, len(r.figures))
	for i, f := range r.figures {
		all[i] = of(f)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (f figure) theRate() float64 { return f.rate }
func (f figure) theCPU() float64  { return f.cpu }
func (f figure) theP50() float64  { return f.p50 }
func (f figure) theP99() float64  { return f.p99 }

// print writes the medians as a table. Ratios are relative to the floor of the same measurement.
func print(out io.Writer, rows []*row) {
	fmt.Fprintln(out, "| what | connections | way | per second | of the floor | CPU us each | of the floor | p50 us | p99 us | over the floor's |")
	fmt.Fprintln(out, "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	var floor *row
	for _, r := range rows {
		if r.floor {
			floor = r
		}
		rate, cpu := r.median(figure.theRate), r.median(figure.theCPU)
		p50, p99 := r.median(figure.theP50), r.median(figure.theP99)
		ofRate, ofCPU, over := "", "", ""
		if floor != nil && floor.what == r.what && floor.connections == r.connections {
			ofRate = fmt.Sprintf("%.2f", rate/floor.median(figure.theRate))
			ofCPU = fmt.Sprintf("%.2f", cpu/floor.median(figure.theCPU))
			over = fmt.Sprintf("%+.0f, %+.0f", p50-floor.median(figure.theP50), p99-floor.median(figure.theP99))
		}
		fmt.Fprintf(out, "| %s | %d | %s | %.0f | %s | %.1f | %s | %.0f | %.0f | %s |\n", r.what, r.connections, r.way, rate, ofRate, cpu, ofCPU, p50, p99, over)
	}
}
