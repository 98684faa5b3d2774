package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/logging"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// troubles holds the problems that prevent weir from doing what its file configures, but do not stop it. They are
// logged when they begin and end.
type troubles struct {
	log *slog.Logger

	mu  sync.Mutex
	all map[string]status.Trouble // by subject
}

// note records the state of a subject. A nil err means that it works.
func (t *troubles) note(what, upstream, help string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, bad := t.all[what]
	switch {
	case err == nil && bad:
		delete(t.all, what)
		t.log.Info("problem solved", "with", what)
	case err != nil:
		text := observe.Redact(err.Error(), longestTrouble)
		if t.all == nil {
			t.all = make(map[string]status.Trouble)
		}
		since := was.Since
		if !bad {
			since = time.Now()
		}
		t.all[what] = status.Trouble{With: what, Upstream: upstream, Error: text, Help: help, Since: since}
		if !bad || was.Error != text {
			t.log.Error("trouble", "with", what, "error", text, "help", help)
		}
	}
}

const longestTrouble = 500

// list returns all problems, sorted by subject.
func (t *troubles) list() []status.Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.all), func(a, b status.Trouble) int { return cmp.Compare(a.With, b.With) })
}

// troubled returns all problems, including those of the store.
func (s *Server) troubled() []status.Trouble {
	all := s.troubles.list()
	if s.finder != nil {
		if f := s.finder.status(); f.Error != "" {
			all = append(all, status.Trouble{With: "store " + s.finder.kind, Error: f.Error, Help: "docs/how-to/share-a-limit.md describes what calls do meanwhile; weir check --connect tries the store"})
		}
	}
	return all
}

// countTroubles returns the number of problems by upstream, under "" for general ones.
func (s *Server) countTroubles() map[string]int {
	n := map[string]int{"": 0}
	for name := range s.proxy.Upstreams() {
		n[name] = 0
	}
	for _, t := range s.troubled() {
		if t.With == status.WithDeliveries {
			t.Upstream = "(deliveries)" // direct callers do not notice it, but submitters of deliveries do
		}
		n[t.Upstream]++
	}
	return n
}

// keep removes the problems of removed upstreams.
func (t *troubles) keep(with map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(what string, s status.Trouble) bool { return s.Upstream != "" && !with[what] })
}

// sdkLog returns a logger that writes messages of the AWS SDK to the log.
func sdkLog(log *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(c logging.Classification, format string, args ...any) {
		level := slog.LevelDebug
		if c == logging.Warn {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "AWS SDK", "said", observe.Redact(fmt.Sprintf(format, args...), longestTrouble))
	})
}

// checkKeys is how often weir checks credentials. Valid credentials cost no request.
const checkKeys = 10 * time.Second

const keysHelp = "weir has no credentials for AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role"

// watchKeys checks whether signed upstreams have credentials, until ctx ends.
func (s *Server) watchKeys(ctx context.Context) {
	for {
		with := make(map[string]bool)
		for upstream, keys := range s.speaks.keys() {
			what := "credentials of upstream " + upstream
			with[what] = true
			s.lookAtKeys(ctx, what, upstream, keys)
		}
		s.troubles.keep(with)
		if clock.System.Sleep(ctx, checkKeys) != nil {
			return
		}
	}
}

func (s *Server) lookAtKeys(ctx context.Context, what, upstream string, keys aws.CredentialsProvider) {
	inTime, cancel := context.WithTimeout(ctx, trying)
	defer cancel()
	_, err := keys.Retrieve(inTime)
	if ctx.Err() == nil || err == nil {
		s.troubles.note(what, upstream, keysHelp, err)
	}
}

// hollow reports whether a file exists and is empty.
func hollow(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}
