package llm_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/test/refusals"
	"github.com/seed1158cd35/weir/llm"
)

// For every refusal and every family, the body can be parsed and has the status of the refusal. A wait in the body
// equals the wait in the headers.
func TestRefusalsOfEveryFamily(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		refusal := refusals.Random(r)
		f := refuse.Of(refusal, time.Now())
		for _, family := range []llm.Family{llm.OpenAI, llm.Anthropic, llm.Gemini, llm.Converse, llm.Invoke} {
			w := httptest.NewRecorder()
			f.Header(w.Header())
			llm.Default(family).Refuse(w, llm.FailureOf(f, "id"))
			body := w.Body.Bytes()
			ms := strconv.FormatInt(refuse.Ceil(f.Wait, time.Millisecond), 10)
			if !json.Valid(body) || !utf8.Valid(body) || w.Header().Get("Retry-After-Ms") != ms || w.Header().Get("X-Weir-Refused") != string(refusal.Reason) {
				t.Fatalf("seed %d, family %v: %v %s", seed, family, w.Header(), body)
			}
			aws := family == llm.Converse || family == llm.Invoke // for these, the error code determines the status
			if final := w.Header().Get("X-Should-Retry") == "false"; !aws && w.Code != f.Status || final != (refusal.Reason == weir.QuotaExhausted && f.Wait > time.Minute || f.Kind() == refuse.Limited && f.Wait >= refuse.LongWait) {
				t.Fatalf("seed %d, family %v: %d %v of %v", seed, family, w.Code, w.Header(), refusal)
			}
			if said := w.Header().Get("X-Amz-Retry-After"); said != "" && said != ms {
				t.Fatalf("seed %d: x-amz-retry-after %s, want %s", seed, said, ms)
			}
			if _, delay, ok := strings.Cut(string(body), `"retryDelay":"`); ok {
				d, err := time.ParseDuration(delay[:strings.IndexByte(delay, '"')])
				if err != nil || d.Milliseconds() != refuse.Ceil(f.Wait, time.Millisecond) {
					t.Fatalf("seed %d: retryDelay %v of %v: %s", seed, d, f.Wait, body)
				}
			}
		}
	}
}
