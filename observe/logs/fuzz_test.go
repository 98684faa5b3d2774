package logs

import (
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLines checks that each line is JSON and within the maximum length, for any text of callers and upstreams.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"", canary, "a\nb\r\n{\"level\":\"ERROR\"}", "\xff\xfe\x00", "Bearer sk-" + canary, strings.Repeat("x", 10_000), "\u2028\u202e", `","msg":"mine`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, said string) {
		log, b := logger(slog.LevelDebug)
		tellAll(Events(log), said)
		for line := range strings.Lines(b.String()) {
			if len(line) > 8<<10 || !utf8.ValidString(line) {
				t.Errorf("%q makes a line of %d bytes: %.300q", said, len(line), line)
			}
		}
		for _, l := range lines(t, b) {
			if l["msg"] == nil || l["level"] == nil {
				t.Errorf("%q makes %v", said, l)
			}
		}
	})
}
