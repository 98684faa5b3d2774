package awsx_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
)

func TestShardsAreEvenAndReversible(t *testing.T) {
	for _, n := range []int{1, 2, 7, 16, 17, 256, 300, 4096} {
		s, err := awsx.NewShards(n)
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		const keys = 20_000
		for i := range keys {
			key := fmt.Sprintf("logs/2026/11/%02d/%d/ü %x", i%30, i, rand.Uint32())
			kept := s.Key(key)
			if got, ok := s.Original(kept); !ok || got != key {
				t.Fatalf("%q is kept at %q and read as %q, %v", key, kept, got, ok)
			}
			count[kept[:strings.IndexByte(kept, '/')+1]]++
		}
		for _, p := range s.Prefixes("") {
			if share := float64(count[p]) * float64(n) / keys; n <= 256 && (share < 0.4 || share > 1.8) {
				t.Errorf("%d shards: %s has %.2f of an even share", n, p, share)
			}
			delete(count, p)
		}
		if len(count) > 0 {
			t.Errorf("%d shards: keys elsewhere: %v", n, count)
		}
		if _, ok := s.Original("zz/elsewhere"); ok {
			t.Error("a key that was never sharded is taken for one")
		}
	}
	for _, n := range []int{0, -1, 1<<16 + 1} {
		if _, err := awsx.NewShards(n); err == nil {
			t.Errorf("%d shards: no error", n)
		}
	}
}

// A throttled prefix slows down alone.
func TestPrefixesLearnForThemselves(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/b/hot/") {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
		}
	}))
	defer s.Close()
	cfg := config(s.URL)
	g := awsx.New(awsx.Options{Policy: func(t awsx.Target) weir.Policy {
		p := awsx.Preset(t.Service)
		p.Retry.Attempts, p.Breaker.Failures = 1, 1000
		return p
	}})
	g.Attach(&cfg)
	c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			for _, prefix := range []string{"hot", "cold"} {
				_, _ = c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String(fmt.Sprintf("%s/%d", prefix, i)), Body: strings.NewReader("x")})
			}
		})
	}
	wg.Wait()
	rate := map[string]float64{}
	for _, target := range g.Targets() {
		u, err := g.Upstream(target)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range u.Look(100).Limits {
			if l.Limit.Name == "writes" {
				rate[l.Key] = l.Level.PerSecond
			}
		}
	}
	if rate["b/hot/"] == 0 || rate["b/cold/"] == 0 || rate["b/hot/"] > 0.8*rate["b/cold/"] {
		t.Errorf("rates %v, want that of the throttled prefix lower", rate)
	}
	if rate["b/cold/"] > 1750 { // a new prefix begins with half of the published rate
		t.Errorf("a new prefix begins at %v/s", rate["b/cold/"])
	}
}
