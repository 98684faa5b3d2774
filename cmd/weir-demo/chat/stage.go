package chat

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

// The only keys that the providers accept.
const (
	PrimaryKey   = "sk-practice-primary"
	ElsewhereKey = "sk-practice-elsewhere"
)

// A stage is two providers, a sidecar in front of them, and the customers.
type stage struct {
	Config
	primary, elsewhere *llmsim.Provider
	servers            []*llmsim.Server
	sidecar            *Sidecar
	client             *http.Client
	asked              int
}

func newStage(c Config) (*stage, error) {
	if c.Sidecar == nil {
		return nil, errors.New("chat: there is no sidecar")
	}
	s := &stage{Config: c, client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	s.primary = provider(primaryModel, primaryTakes(rateWell), PrimaryKey)
	s.elsewhere = provider(secondaryModel, elsewhereTakes, ElsewhereKey)
	for _, p := range []*llmsim.Provider{s.primary, s.elsewhere} {
		at, err := p.Start()
		if err != nil {
			s.close()
			return nil, err
		}
		s.servers = append(s.servers, at)
	}
	var err error
	if s.sidecar, err = c.Sidecar(s.servers[0].URL, s.servers[1].URL); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func provider(model string, m llmsim.Model, key string) *llmsim.Provider {
	return llmsim.New(llmsim.Config{
		Models: map[string]llmsim.Model{model: m},
		Keys:   map[string]llmsim.Key{key: {Name: "shop"}},
		Answer: func(q llmsim.Question) llmsim.Reply { return llmsim.Reply{Text: answer(languageOf(q.Text))} },
	})
}

func languageOf(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }) {
		return "ja"
	}
	return "en"
}

func (s *stage) close() {
	s.client.CloseIdleConnections()
	if s.sidecar != nil {
		s.sidecar.Close()
	}
	for _, at := range s.servers {
		at.Close()
	}
}

// perform runs an act, shows each answer when it arrives, and waits for all of them.
func (s *stage) perform(ctx context.Context, p play, show func(reply)) (Act, error) {
	p.set(s)
	before := [2]int{len(s.primary.Log()), len(s.elsewhere.Log())}
	var (
		mu      sync.Mutex
		replies []reply
		calls   sync.WaitGroup
	)
	begun := time.Now()
	for n := 0; ; n++ {
		due := time.Duration(n) * time.Second / time.Duration(s.Rate)
		if due >= s.Act {
			mu.Lock()
			over := !p.until || recovered(replies) || due >= 3*s.Act
			mu.Unlock()
			if over {
				break
			}
		}
		if clock.System.Sleep(ctx, due-time.Since(begun)) != nil {
			break
		}
		q := ask(s.asked)
		s.asked++
		calls.Go(func() {
			r := s.call(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			replies = append(replies, r)
			show(r)
		})
	}
	calls.Wait()
	if ctx.Err() != nil {
		return Act{}, context.Cause(ctx)
	}
	a := score(p, replies)
	a.Seconds = time.Since(begun).Seconds()
	a.Primary = attempts(s.primary.Log()[before[0]:])
	a.Elsewhere = attempts(s.elsewhere.Log()[before[1]:])
	return a, nil
}

// recovered reports whether the primary has recently answered every call that the cache did not answer.
func recovered(replies []reply) bool {
	const enough = 12
	if len(replies) < enough {
		return false
	}
	for _, r := range replies[len(replies)-enough:] {
		if r.Degraded {
			return false
		}
	}
	return true
}
