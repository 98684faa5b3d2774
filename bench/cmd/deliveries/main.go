// Deliveries measures deliveries in SQLite and in PostgreSQL, and floors and River in the same run, on a server that it starts.
// It prints a table.
//
//	deliveries -rounds 3
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

func main() {
	rounds := flag.Int("rounds", 3, "how many times everything is measured")
	lasts := flag.Duration("lasts", 4*time.Second, "how long each is measured")
	many := flag.Int("many", 1_000_000, "how many wait where many do")
	only := flag.String("only", "", "one part: accepts, end, river, pickup, waiting, sqlite, filewaiting, key, reader, http, bodies, down, dynamodb")
	bodies := flag.Int("bodies", 1000, "how many large bodies are handed in")
	flag.IntVar(&callers, "callers", callers, "how many hand in at once")
	stats := flag.Bool("stats", false, "print where the time goes, too")
	weir := flag.String("weir", "../bin/weir", "the binary that sends what waits")
	more := flag.String("url", "", "what is added to the URL of the database, such as &plan_cache_mode=auto")
	bare := flag.String("answers", "", "be a server at this address that stores nothing")
	flag.Parse()
	if *bare != "" {
		fmt.Fprintln(os.Stderr, answers(*bare))
		os.Exit(1)
	}
	os.Exit(servers.With(func(t servers.TB) int {
		m := &measure{tb: t, lasts: *lasts, stats: *stats, weir: *weir, bodies: *bodies, figures: make(map[string][]float64)}
		for round := range *rounds {
			fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, *rounds)
			m.round(*many, *only, *more)
		}
		m.table()
		return 0
	}))
}

// measure has the figures by name, one per round.
type measure struct {
	tb        servers.TB
	lasts     time.Duration
	stats     bool
	weir      string
	bodies    int
	unlimited bool // policies without limit and breaker
	names     []string
	figures   map[string][]float64
}

func (m *measure) is(name string, v float64) {
	if m.figures[name] == nil {
		m.names = append(m.names, name)
	}
	m.figures[name] = append(m.figures[name], v)
	fmt.Fprintf(os.Stderr, "  %s: %.4g\n", name, v)
}

func (m *measure) latest(name string) float64 {
	all := m.figures[name]
	return all[len(all)-1]
}

// ratio records the ratio of two figures of this round.
func (m *measure) ratio(name, of, to string) { m.is(name, m.latest(of)/m.latest(to)) }

func (m *measure) table() {
	fmt.Println("| what | median | least | most |\n| --- | ---: | ---: | ---: |")
	for _, name := range m.names {
		all := slices.Sorted(slices.Values(m.figures[name]))
		fmt.Printf("| %s | %.3g | %.3g | %.3g |\n", name, all[len(all)/2], all[0], all[len(all)-1])
	}
}

func (m *measure) must(err error) {
	if err != nil {
		m.tb.Fatalf("%v", err)
	}
}
