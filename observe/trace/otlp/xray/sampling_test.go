package xray

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/seed1158cd35/weir/observe/trace"
)

// A centre is X-Ray's, as far as it has to do with sampling.
type centre struct {
	mu      sync.Mutex
	away    bool
	rules   string
	targets string
	told    []statistic
	reads   int
}

func (c *centre) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errors.New("away")
	}
	answer := c.rules
	if r.URL.Path == "/SamplingTargets" {
		var in struct{ SamplingStatisticsDocuments []statistic }
		_ = json.NewDecoder(r.Body).Decode(&in)
		c.told = append(c.told, in.SamplingStatisticsDocuments...)
		answer = c.targets
	} else {
		c.reads++
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

func (c *centre) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

const (
	orders  = `{"SamplingRule":{"RuleName":"orders","Priority":50,"ReservoirSize":10,"FixedRate":0,"ServiceName":"sh?p","ServiceType":"*","Host":"*.example.com","HTTPMethod":"POST","URLPath":"/orders/*","ResourceARN":"*","Version":1}}`
	usual   = `{"SamplingRule":{"RuleName":"Default","Priority":10000,"ReservoirSize":1,"FixedRate":0,"ServiceName":"*","ServiceType":"*","Host":"*","HTTPMethod":"*","URLPath":"*","ResourceARN":"*","Version":1}}`
	another = `{"SamplingRule":{"RuleName":"buckets","Priority":1,"ReservoirSize":100,"FixedRate":1,"ServiceName":"*","ServiceType":"AWS::EC2::Instance","Host":"*","HTTPMethod":"*","URLPath":"*","ResourceARN":"*","Version":1}}`
)

func sampling(c *centre) *Sampler {
	return NewSampler(&API{AWS: aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("A", "S", "")}, Client: &http.Client{Transport: c}}, "shop", nil)
}

var order = trace.Asked{Method: "POST", Host: "api.example.com", Path: "/orders/7"}

// kept is how many of n requests are kept now, and whether that is known at all.
func kept(s *Sampler, a trace.Asked, n int) (yes int, known bool) {
	for range n {
		y, k := s.Sample(a, time.Now())
		if known = k; y {
			yes++
		}
	}
	return yes, known
}

// A process borrows one a second of a rule's reservoir until the centre says how much of it is for it, which holds until
// its time is over; the rate is what the centre says.
func TestAReservoirIsBorrowedAndThenGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := func() float64 { return float64(time.Now().Unix()) }
		c := &centre{rules: `{"SamplingRuleRecords":[` + usual + `,` + another + `,` + orders + `]}`, targets: `{}`}
		s := sampling(c)
		defer func() { _ = s.Close() }()
		synctest.Wait()
		for range 3 {
			if n, known := kept(s, order, 100); n != 1 || !known {
				t.Errorf("%d of 100 are kept, known %v; want one that is borrowed", n, known)
			}
			time.Sleep(time.Second)
		}
		c.set(func() {
			b, _ := json.Marshal(map[string]any{"SamplingTargetDocuments": []any{map[string]any{"RuleName": "orders", "FixedRate": 0, "ReservoirQuota": 7, "ReservoirQuotaTTL": now() + 30}}})
			c.targets = string(b)
		})
		time.Sleep(tellCounts)
		synctest.Wait()
		if n, _ := kept(s, order, 100); n != 7 {
			t.Errorf("%d of 100 are kept, want the 7 that the centre gives", n)
		}
		c.set(func() {
			if len(c.told) != 1 || c.told[0].RuleName != "orders" || c.told[0].RequestCount != 300 || c.told[0].BorrowCount != 3 || c.told[0].SampledCount != 0 || len(c.told[0].ClientID) != 24 {
				t.Errorf("the centre was told %+v, want 300 requests, of which 3 were borrowed", c.told)
			}
			c.targets = `{"SamplingTargetDocuments":[{"RuleName":"orders","FixedRate":0}]}`
		})
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if n, _ := kept(s, order, 100); n != 1 {
			t.Errorf("%d of 100 are kept once the time of what was given is over, want one that is borrowed", n)
		}
		c.set(func() { c.targets = `{"SamplingTargetDocuments":[{"RuleName":"orders","FixedRate":1}]}` })
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if n, _ := kept(s, order, 100); n != 100 {
			t.Errorf("%d of 100 are kept, want all: so says the centre's rate", n)
		}
		if n, known := kept(s, trace.Asked{Method: "GET", Host: "x", Path: "/"}, 100); n != 1 || !known {
			t.Errorf("%d of what only the last rule is for are kept, want 1", n)
		}
	})
}

// While the centre is away its rules hold for an hour; then, as before it was first heard of, the tracer's own rule does.
// What it could not be told it is told later, and rules that have changed are read at once.
func TestTheCentreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &centre{away: true, rules: `{"SamplingRuleRecords":[` + usual + `]}`, targets: `{}`}
		s := sampling(c)
		defer func() { _ = s.Close() }()
		synctest.Wait()
		if _, known := kept(s, order, 1); known {
			t.Error("it decides, and nobody has told it how")
		}
		c.set(func() { c.away = false })
		time.Sleep(tellCounts)
		synctest.Wait()
		if _, known := kept(s, order, 5); !known {
			t.Error("it does not decide by the rules that are there now")
		}
		c.set(func() { c.away = true })
		time.Sleep(59 * time.Minute)
		if _, known := kept(s, order, 5); !known {
			t.Error("rules of an hour ago do not hold")
		}
		time.Sleep(2 * time.Minute)
		if _, known := kept(s, order, 5); known {
			t.Error("rules hold that are older than an hour")
		}
		c.set(func() { c.away = false })
		time.Sleep(tellCounts)
		synctest.Wait()
		c.set(func() {
			n := int64(0)
			for _, told := range c.told {
				n += told.RequestCount
			}
			if n != 10 {
				t.Errorf("the centre was told of %d requests, want 10", n)
			}
			c.reads = 0
			c.targets = `{"LastRuleModification":99999999999}`
		})
		kept(s, order, 1)
		time.Sleep(tellCounts)
		synctest.Wait()
		c.set(func() {
			if c.reads != 1 {
				t.Errorf("rules that have changed were read %d times, want once", c.reads)
			}
		})
	})
}

// Patterns are as X-Ray has them.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"", "", true}, {"", "a", false}, {"?", "", false}, {"a*c", "abbc", true}, {"a*c", "abbcd", false}, {"*.com", "A.Example.COM", true},
		{"/a/?", "/a/b", true}, {"/a/?", "/a/bc", false}, {"a**b", "ab", true}, {"*a*b*c", strings.Repeat("ab", 2000), false},
	} {
		if got := matches(c.pattern, c.text); got != c.want {
			t.Errorf("%q matches %.20q: got %v, want %v", c.pattern, c.text, got, c.want)
		}
	}
}
