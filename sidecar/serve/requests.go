package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/delivery/inbox"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// newInbox returns the queue whose messages are requests. It sends requests to the server of the queue's URL.
func newInbox(c *config.Requests) (*inbox.Inbox, error) {
	q, err := sqsAt(c.Queue, c.Region)
	if err != nil {
		return nil, fmt.Errorf("deliveries: requests: %w", err)
	}
	return &inbox.Inbox{Queue: q, URL: c.Queue}, nil
}

// sqsAt returns an SQS client that sends requests to the server of a queue's URL.
func sqsAt(queue, region string) (*sqs.Client, error) {
	at, err := url.Parse(queue)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	cfg, err := awsDefaults(cmp.Or(region, regionOf(at.Hostname())))
	if err != nil {
		return nil, err
	}
	return sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = aws.String(at.Scheme + "://" + at.Host) }), nil
}

// regionOf returns the region in the name of an SQS server (sqs.eu-central-1.amazonaws.com), or "" for another server.
func regionOf(host string) string {
	name, is := strings.CutPrefix(host, "sqs.")
	region, of, _ := strings.Cut(name, ".")
	if !is || !strings.HasPrefix(of, "amazonaws.com") {
		return ""
	}
	return region
}

// openInbox prepares submitting the requests of a queue, which begins with the deliveries. A queue with the wrong setup
// is a problem until it is corrected. An unreachable one may become reachable later.
func (s *Server) openInbox(c *config.Requests, d *deliveries) error {
	if c == nil {
		return nil
	}
	b, err := newInbox(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	err = b.Check(ctx)
	s.noteInbox(err)
	d.receive = func(ctx context.Context) {
		for isSetup(err) && clock.System.Sleep(ctx, recheckEvery) == nil {
			err = b.Check(ctx)
			s.noteInbox(err)
		}
		if ctx.Err() == nil {
			b.Run(ctx)
		}
	}
	b.Failed = func(err error) {
		if p, is := errors.AsType[*inbox.PanicError](err); is {
			s.log.Error("panic", "fault", outcome.System.String(), "id", p.ID, "stack", string(p.Stack))
			s.proxy.Panicked(p.ID, err)
			return
		}
		d.worker.Events.Error("requests", "", err)
	}
	b.Unread = s.proxy.Unread
	b.Hand = func(r *http.Request) inbox.Answer { return s.handIn(r, c.Owner) }
	d.inbox = b
	return nil
}

// noteInbox reports a queue of requests with the wrong setup, and logs another error.
func (s *Server) noteInbox(err error) {
	if err != nil && !isSetup(err) {
		s.log.Error("deliveries", "error", err.Error())
		err = nil
	}
	s.troubles.note("requests from the deliveries' queue", "", "other requests are served; weir checks the queue every 5 seconds, and then receives from it", err)
}

// handIn submits a request from the queue.
func (s *Server) handIn(r *http.Request, owner string) inbox.Answer {
	w := handed{header: make(http.Header)}
	s.proxy.HandIn(&w, r, owner)
	wait, _ := strconv.Atoi(w.header.Get("Retry-After"))
	return inbox.Answer{Status: w.status, Wait: time.Duration(wait) * time.Second}
}

// handed is the response to a submitted request. Its body is discarded.
type handed struct {
	header http.Header
	status int
}

func (h *handed) Header() http.Header { return h.header }

func (h *handed) WriteHeader(status int) {
	if h.status == 0 && status >= http.StatusOK { // 1xx is not the final response
		h.status = status
	}
}

func (h *handed) Write(b []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return len(b), nil
}

// initRequests creates the queue of requests.
func initRequests(ctx context.Context, out io.Writer, c *config.Requests) error {
	b, err := newInbox(c)
	if err != nil {
		return err
	}
	made, err := b.Init(ctx)
	switch {
	case err != nil:
		return err
	case made:
		fmt.Fprintln(out, "the queue of requests is ready: it was created, with its dead letter queue")
	default:
		fmt.Fprintln(out, "the queue of requests is ready: nothing had to be changed")
	}
	return nil
}

// triesRequests returns the trial that checks the queue.
func triesRequests(c *config.Requests) []trial {
	if c == nil {
		return nil
	}
	return []trial{{"deliveries requests", func(ctx context.Context) (string, error) {
		b, err := newInbox(c)
		if err != nil {
			return "", err
		}
		begin := time.Now()
		if err := b.Check(ctx); err != nil {
			return "", err
		}
		return fmt.Sprintf("answers in %v, its dead letter queue exists", time.Since(begin).Round(100*time.Microsecond)), nil
	}}}
}

// Moves returns the redrives of a queue's dead letters. It sends requests to the server of the queue's URL.
func Moves(ctx context.Context, queue string) (*inbox.Moves, error) {
	q, err := sqsAt(queue, "")
	if err != nil {
		return nil, err
	}
	return inbox.MovesOf(ctx, q, queue)
}

func isSetup(err error) bool {
	_, is := errors.AsType[*inbox.SetupError](err)
	return is
}
