package endure

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables into bench/records/presets.md")

const (
	page  = "../../../bench/records/presets.md"
	begin = "<!-- tables: begin; go test ./internal/test/endure -run Page -full -update writes them -->\n"
	end   = "<!-- tables: end -->\n"
)

// A column is a fault with its name in the tables.
var columns = []struct{ fault, head string }{
	{"30% throttled", "30% throttled"}, {"50% throttled", "50% throttled"}, {"all throttled for 1s", "throttled 1s"}, {"all throttled for 2s", "throttled 2s"},
	{"a quarter passes each second", "1/4 a second"}, {"30% fail", "30% fail"}, {"50% fail", "50% fail"}, {"all fail for 100ms", "fail 0.1s"}, {"all fail for 1s", "fail 1s"},
	{"all fail for 2s", "fail 2s"}, {"stall of 5s", "stall 5s"}, {"stall of 20s", "stall 20s"}, {"outage", "outage"},
}

// The page has a row for each preset. -update writes the rows.
func TestThePageShowsEveryPreset(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(b), begin)
	_, tail, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no place for the tables between\n%sand\n%s", page, begin, end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+tables(t)+end+tail), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, c := range candidates() {
		if n := strings.Count(rest, "| "+c.name+" |"); n != 4 {
			t.Errorf("%s stands in %d tables of four; go test ./internal/test/endure -run Page -full -update", c.name, n)
		}
	}
}

func tables(t *testing.T) string {
	var b strings.Builder
	for i, load := range []string{"Calls that come at once", "Calls that come one by one"} {
		good, attempts := heading(), heading()
		for _, c := range candidates() {
			shares, counts := c.row(t, c.loads[i])
			good += "| " + c.name + " | " + strings.Join(shares, " | ") + " |\n"
			attempts += "| " + c.name + " | " + strings.Join(counts, " | ") + " |\n"
		}
		fmt.Fprintf(&b, "\n### %s: good calls, %%\n\n%s\n### %s: attempts a call\n\n%s", load, good, load, attempts)
	}
	return b.String() + "\n"
}

func heading() string {
	h, line := "| preset |", "| --- |"
	for _, c := range columns {
		h, line = h+" "+c.head+" |", line+" --- |"
	}
	return h + "\n" + line + "\n"
}

// row returns the results of a load under each fault: of the preset and of each bare client.
func (c *candidate) row(t *testing.T, l load) (shares, counts []string) {
	byName := make(map[string]fault)
	for _, f := range faults(l, c.waits) {
		byName[f.name] = f
	}
	for _, column := range columns {
		f := byName[column.fault]
		s := []score{c.play(t, l, f, plays(l))}
		for _, b := range c.bare {
			s = append(s, b.play(t, l, f, c.words, plays(l)))
		}
		var share, count []string
		for i, s := range s {
			mark := ""
			if i == 0 {
				mark = "**"
			}
			share = append(share, mark+percent(s.share())+mark)
			count = append(count, fmt.Sprintf("%s%.2f%s", mark, s.perCall(), mark))
		}
		shares, counts = append(shares, strings.Join(share, " ")), append(counts, strings.Join(count, " "))
	}
	return shares, counts
}

// percent formats a share in percent. It prints 100 only for a complete share.
func percent(share float64) string {
	if share == 1 {
		return "100"
	}
	return fmt.Sprintf("%.1f", min(99.9, 100*share))
}
