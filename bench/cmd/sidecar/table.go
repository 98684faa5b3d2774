package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// A row is one way of one measurement, and what it brought in each round.
type row struct {
	what, way   string
	connections int
	address     string
	story       story
	process     *process // in the middle; nil if there is none
	floor       bool     // what weir is measured against
	figures     []figure
}

// rows are all that is measured, those of one measurement one after the other.
func (s *stage) rows() (all []*row) {
	for _, n := range []int{1, 64} {
		add := func(what, way, address string, of story, p *process, floor bool) {
			all = append(all, &row{what: what, way: way, connections: n, address: address, story: of, process: p, floor: floor})
		}
		add("pass", "direct", s.upstream.address, get("/a/b?c=d", "200"), nil, false)
		add("pass", "bare", s.bare.address, get("/a/b?c=d", "200"), s.bare, true)
		add("pass", "bare, GOGC=800", s.spared.address, get("/a/b?c=d", "200"), s.spared, false)
		for _, w := range s.weirs {
			add("pass", w.name, w.address, get("/api/a/b?c=d", "200"), w, false)
		}
		add("refuse", "bare handler", s.answer.address, get("/refuse", "200"), s.answer, true)
		for _, w := range s.weirs {
			add("refuse", w.name, w.address, get("/tight/a/b?c=d", "429"), w, false)
		}
		add("decide", "bare handler", s.answer.address, pair, s.answer, true)
		for _, w := range s.weirs {
			add("decide", w.name, w.decides, pair, w, false)
		}
	}
	return all
}

// measure measures every row in every round.
func (s *stage) measure(rounds int, each time.Duration, only string) (all []*row, err error) {
	all = slices.DeleteFunc(s.rows(), func(r *row) bool { return !strings.HasPrefix(r.what, only) })
	for _, w := range s.weirs {
		if err := once(w.address, get("/tight/a/b?c=d", "200")); err != nil { // all that its limit lets through
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

// median is that of one of the numbers of the rounds.
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

// print writes the medians as a table; ratios are to the floor of the same measurement.
func print(out io.Writer, rows []*row) {
	fmt.Fprintln(out, "| what | connections | way | per second | of the floor | CPU us each | of the floor | p50 us | p99 us |")
	fmt.Fprintln(out, "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	var floor *row
	for _, r := range rows {
		if r.floor {
			floor = r
		}
		rate, cpu := r.median(figure.theRate), r.median(figure.theCPU)
		ofRate, ofCPU := "", ""
		if floor != nil && floor.what == r.what && floor.connections == r.connections {
			ofRate = fmt.Sprintf("%.2f", rate/floor.median(figure.theRate))
			ofCPU = fmt.Sprintf("%.2f", cpu/floor.median(figure.theCPU))
		}
		fmt.Fprintf(out, "| %s | %d | %s | %.0f | %s | %.1f | %s | %.0f | %.0f |\n", r.what, r.connections, r.way, rate, ofRate, cpu, ofCPU,
			r.median(func(f figure) float64 { return f.p50 }), r.median(func(f figure) float64 { return f.p99 }))
	}
}
