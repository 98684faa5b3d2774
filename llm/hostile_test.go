package llm

import (
	"runtime"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/raced"
)

// The cost of parsing a body is proportional to its size, for every content.
func TestHostileBodiesCostWhatTheyWeigh(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	const size = 1 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, x := range map[string]string{
		"numbers":   "[" + fill("1,") + "1]",
		"members":   "{" + fill(`"":0,`) + `"":0}`,
		"escapes":   `"` + fill(`\u00e9`) + `"`,
		"names":     "{" + fill(`"\u00e9\n":0,`) + `"":0}`,
		"deep":      "[" + fill(strings.Repeat("[", maxDepth-10)+strings.Repeat("]", maxDepth-10)+",") + "1]",
		"digits":    "1" + fill("0"),
		"fractions": "0." + fill("0") + "1",
		"images":    "[" + fill(`{"image_url":"data:,"},`) + "1]",
	} {
		for _, path := range []string{chatPath, novaPath} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := parse(t, path, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":`+x+`}]}`)
			_, _, _ = r.Key(), r.Prompt(), r.Question()
			_, _, _ = r.For("other")
			runtime.ReadMemStats(&after)
			if spent := after.TotalAlloc - before.TotalAlloc; spent > 100*size {
				t.Errorf("%s at %s: %d MiB for 1 MiB", name, path, spent>>20)
			}
		}
	}
}
