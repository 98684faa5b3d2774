package wire_test

import (
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/wire"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/test/refusals"
)

// For any refusal, the header of each protocol has the same delay, or none if a retry is useless, and bodies are text.
func TestRefusalsOfEveryProtocol(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		refusal := refusals.Random(r)
		f := refuse.Of(refusal, time.Now())
		for _, p := range []wire.Protocol{wire.S3, wire.Query, wire.EC2, wire.RestXML, wire.RestJSON, wire.JSON10, wire.JSON11} {
			w := httptest.NewRecorder()
			f.Header(w.Header())
			e := wire.ErrorOf(f, "id")
			e.Write(w, wire.Op{Service: "s3", Protocol: p}, "GET")
			ms := strconv.FormatInt(refuse.Ceil(f.Wait, time.Millisecond), 10)
			want := ms
			if f.Wait > 20*time.Second { // no SDK waits that long
				want = ""
			}
			if h := w.Header(); !utf8.Valid(w.Body.Bytes()) || h.Get("X-Amz-Retry-After") != want || h.Get("Retry-After-Ms") != ms || h.Get("X-Weir-Refused") != string(refusal.Reason) {
				t.Fatalf("seed %d, protocol %v: %v %s", seed, p, h, w.Body)
			}
			repeated := w.Code == 503 || w.Code == 429 || w.Code == 400 && refusal.Reason != weir.QuotaExhausted
			if !repeated && refusal.Reason != weir.QuotaExhausted {
				t.Fatalf("seed %d, protocol %v: %d of %v", seed, p, w.Code, refusal)
			}
		}
	}
}
