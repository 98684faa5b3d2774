package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A series identifies the repetitions of one figure: a unit ("ns/op"), a row, a group, and a mode ("g=1", "g=64").
type series struct{ group, row, mode, unit string }

// results has all figures, and groups and rows in their order in the input.
type results struct {
	groups  []string
	rows    map[string][]string
	figures map[series][]float64
}

// BenchmarkGroup/row/mode-cpus; the row may contain slashes
var benchmark = regexp.MustCompile(`^Benchmark(\w+)/(.+)/(g=\d+)(?:-\d+)?$`)

func (r *results) readFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.read(f)
}

// read parses the output of go test -bench. It returns an error for a failed run, because its figures are not reliable.
func (r *results) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "--- FAIL") || strings.HasPrefix(line, "panic:") {
			return fmt.Errorf("the run failed: %s", line)
		}
		if err := r.add(strings.Fields(line)); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return lines.Err()
}

// add parses a name, a number of iterations, and pairs of figure and unit. It ignores other output of go test.
func (r *results) add(fields []string) error {
	if len(fields) < 4 || len(fields)%2 != 0 {
		return nil
	}
	m := benchmark.FindStringSubmatch(fields[0])
	if m == nil {
		return nil
	}
	for i := 2; i < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return err
		}
		r.put(series{m[1], m[2], m[3], fields[i+1]}, v)
	}
	return nil
}

func (r *results) put(s series, v float64) {
	if r.figures == nil {
		r.rows, r.figures = map[string][]string{}, map[series][]float64{}
	}
	if !slices.Contains(r.groups, s.group) {
		r.groups = append(r.groups, s.group)
	}
	if !slices.Contains(r.rows[s.group], s.row) {
		r.rows[s.group] = append(r.rows[s.group], s.row)
	}
	r.figures[s] = append(r.figures[s], v)
}

// median returns NaN if there is no figure. Ratios with NaN are NaN, so a missing row is missing everywhere.
func (r *results) median(s series) float64 {
	v := slices.Sorted(slices.Values(r.figures[s]))
	n := len(v)
	if n == 0 {
		return math.NaN()
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

// spread returns the range of the repetitions, as a share of their median.
func (r *results) spread(s series) float64 {
	v := r.figures[s]
	if len(v) == 0 {
		return math.NaN()
	}
	return (slices.Max(v) - slices.Min(v)) / r.median(s)
}
