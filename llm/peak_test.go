package llm

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/raced"
)

// Values predicts the memory needed to parse the worst bodies, and hashing them for the cache key needs no further
// memory. Requests are admitted based on this prediction.
func TestABodyCostsWhatItsValuesSay(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	const size, head, tail = 2 << 20, `{"model":"gpt-4o","messages":[{"role":"user","content":`, `}]}`
	var names bytes.Buffer
	names.WriteString(head + `"hi","x":{"a":0`)
	for i := 0; names.Len() < size; i++ {
		fmt.Fprintf(&names, `,"%d":0`, i)
	}
	names.WriteString(`}` + tail)
	for kind, c := range map[string]struct {
		body []byte
		most float64 // bytes of memory for each byte of the body
	}{
		"text":     {[]byte(head + `"` + strings.Repeat("word ", size/5) + `"` + tail), 0},
		"numbers":  {[]byte(head + `"hi","x":[0` + strings.Repeat(",0", size/2) + `]` + tail), 8},
		"nested":   {[]byte(head + `"hi","x":` + strings.Repeat("[", 500) + strings.Repeat("[],", size/3) + "0" + strings.Repeat("]", 500) + tail), 5.4},
		"names":    {names.Bytes(), 3.2},
		"messages": {[]byte(`{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}` + strings.Repeat(`,{"role":"user","content":"hi"}`, size/31) + `]}`), 2.7},
		"objects":  {[]byte(head + `"hi","x":[{}` + strings.Repeat(`,{"":0}`, size/7) + `]` + tail), 7},
	} {
		said := int64(Values(c.body)) * NodeSize
		read := allocated(func() {
			r, err := Route{Family: OpenAI, Operation: "chat"}.Parse(c.body)
			if err != nil {
				t.Fatal(err)
			}
			if keyed := allocated(func() { r.Key() }); keyed > said+said/8+256<<10 {
				t.Errorf("%s: %d bytes for the key, want %d at most", kind, keyed, said)
			}
		})
		if read > 2*said+512<<10 || float64(said) > c.most*float64(len(c.body))+4096 {
			t.Errorf("%s of %d bytes: %d are allocated, %d said, want %.1f for each", kind, len(c.body), read, said, c.most)
		}
	}
}

func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}
