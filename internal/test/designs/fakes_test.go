package designs

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/test/drstest"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

// post returns a request with a body.
func post(url, body string, header ...string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// drs is DRS with the quotas of AWS and eight calls a second. In the situation "throttled" it throttles half of the calls.
func drs() played {
	return played{
		name: "drs", weirs: 1, workers: 20, every: 2500 * time.Millisecond, host: "drs.test",
		fake: func(s situation) http.Handler {
			begin, server, calls := time.Now().Add(settle), drstest.AWS(), 0
			var mu sync.Mutex
			server.Fault = func(string) drstest.Fault {
				mu.Lock()
				defer mu.Unlock()
				calls++
				switch {
				case !fault(begin):
				case s == throttled && calls%2 == 0:
					return drstest.Busy
				case s == down:
					return drstest.FailBefore
				}
				return drstest.None
			}
			return server
		},
		call: func(base string, _ int) *http.Request { return post(base+"/drs/DescribeSourceServers", "{}") },
	}
}

// bucketed is Gemini with the limits of the free tier.
func bucketed() played {
	return played{
		name: "bucket", store: true, weirs: 2, workers: 2, every: 15 * time.Second, host: "gemini.test",
		fake: func(s situation) http.Handler {
			p := llmsim.New(llmsim.Config{Default: llmsim.Model{
				FirstToken: 500 * time.Millisecond, Limits: llmsim.Limits{Requests: llmsim.Rate{N: 5}, RequestsPerDay: 25},
			}})
			switch s {
			case throttled:
				faultLater(p, llmsim.Fault{Kind: llmsim.Throttle, NoHint: true})
			case down:
				faultLater(p, llmsim.Fault{Kind: llmsim.Error, Status: http.StatusServiceUnavailable})
			}
			return p
		},
		call: func(base string, n int) *http.Request {
			return post(base+"/gemini/v1beta/models/gemini-2.5-pro:generateContent", fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":"part %d"}]}]}`, n))
		},
	}
}

const chatModel = "anthropic.claude-3-5-sonnet-20240620-v1:0"

// chat is two models and 49 users, an odd number, so that both processes serve each user. In the situation "throttled" the primary refuses all calls.
func chat() played {
	return played{
		name: "chat", store: true, weirs: 2, workers: 5, every: time.Second, host: "model.test",
		fake: func(s situation) http.Handler {
			p := llmsim.New(llmsim.Config{Default: llmsim.Model{FirstToken: 300 * time.Millisecond}})
			switch s {
			case throttled:
				faultLater(p, llmsim.Fault{Kind: llmsim.Throttle, NoHint: true, Model: chatModel})
			case down:
				faultLater(p, llmsim.Fault{Kind: llmsim.Error})
			}
			return p
		},
		call: func(base string, n int) *http.Request {
			return post(base+"/bedrock/model/"+chatModel+"/converse", fmt.Sprintf(`{"messages":[{"role":"user","content":[{"text":"question %d"}]}]}`, n),
				"X-User", fmt.Sprint("user-", n%49))
		},
	}
}

// faultLater applies a fault to all calls from second 20 to second 40.
func faultLater(p *llmsim.Provider, f llmsim.Fault) {
	f.Times, f.For = -1, faultEnd-faultBegin
	time.AfterFunc(settle+faultBegin, func() { p.Fault(f) })
}

// s3 is a bucket, 100 puts a second. In the situation "throttled" it accepts 30 a second.
func s3() played {
	return played{
		name: "s3", store: true, weirs: 2, workers: 10, every: 200 * time.Millisecond, host: "s3.test",
		fake: func(s situation) http.Handler {
			begin := time.Now().Add(settle)
			var mu sync.Mutex
			tokens := 0
			var second time.Duration
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				time.Sleep(30 * time.Millisecond)
				code := ""
				if fault(begin) {
					mu.Lock()
					if now := time.Since(begin).Truncate(time.Second); now != second {
						second, tokens = now, 30
					}
					if tokens--; s == throttled && tokens < 0 {
						code = "SlowDown"
					} else if s == down {
						code = "InternalError"
					}
					mu.Unlock()
				}
				if code == "" {
					return
				}
				w.Header().Set("Content-Type", "application/xml")
				w.WriteHeader(map[string]int{"SlowDown": http.StatusServiceUnavailable, "InternalError": http.StatusInternalServerError}[code])
				_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
			})
		},
		call: func(base string, n int) *http.Request {
			r := post(fmt.Sprintf("%s/s3/bucket/part-%d", base, n), "content")
			r.Method = http.MethodPut
			return r
		},
	}
}

// messaging is ntfy with the limits of ntfy.sh, one message a second.
func messaging() played {
	var mu sync.Mutex
	sent, arrived := make(map[int]time.Time), make(map[int]time.Time)
	return played{
		name: "messaging", store: true, weirs: 1, workers: 2, every: 2 * time.Second, host: "ntfy.test",
		fake: func(s situation) http.Handler {
			begin := time.Now().Add(settle)
			tokens, at := 60.0, begin
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				n, _ := strconv.Atoi(string(body))
				time.Sleep(50 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				now := time.Now()
				tokens, at = min(60, tokens+now.Sub(at).Seconds()/5), now
				switch {
				case s == down && fault(begin):
					w.WriteHeader(http.StatusInternalServerError)
				case s == throttled && fault(begin) || tokens < 1:
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = io.WriteString(w, `{"code":42901,"http":429,"error":"limit reached: too many requests"}`)
				default:
					tokens--
					arrived[n] = now
					_, _ = io.WriteString(w, `{"id":"x","event":"message"}`)
				}
			})
		},
		call: func(base string, n int) *http.Request {
			mu.Lock()
			defer mu.Unlock()
			sent[n] = time.Now()
			r := post(base+"/alerts", strconv.Itoa(n))
			r.Header.Set("Content-Type", "text/plain")
			return r
		},
		delivered: func() (times []time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			for n, at := range arrived {
				times = append(times, at.Sub(sent[n]))
			}
			return times
		},
	}
}
