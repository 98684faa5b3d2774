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

	"github.com/seed1158cd35/weir/delivery/inbox"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// newInbox is the queue whose messages are requests. It is asked at the server of its URL.
func newInbox(c *config.Requests) (*inbox.Inbox, error) {
	q, err := sqsAt(c.Queue, c.Region)
	if err != nil {
		return nil, fmt.Errorf("deliveries: requests: %w", err)
	}
	return &inbox.Inbox{Queue: q, URL: c.Queue}, nil
}

// sqsAt is a client of SQS that asks the server of a queue's URL.
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

// regionOf is what the name of SQS's server says of its region (sqs.eu-central-1.amazonaws.com); "" for another server.
func regionOf(host string) string {
	name, is := strings.CutPrefix(host, "sqs.")
	region, of, _ := strings.Cut(name, ".")
	if !is || !strings.HasPrefix(of, "amazonaws.com") {
		return ""
	}
	return region
}

// openInbox has the requests of a queue handed in, once the deliveries start. A queue that is not as it must be ends weir, one that
// cannot be reached now may be there later.
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
	if err = b.Check(ctx); isSetup(err) {
		return fmt.Errorf("deliveries: requests: %w", err)
	} else if err != nil {
		s.log.Error("deliveries", "error", err.Error())
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

// handIn hands in a request of the queue's.
func (s *Server) handIn(r *http.Request, owner string) inbox.Answer {
	w := handed{header: make(http.Header)}
	s.proxy.HandIn(&w, r, owner)
	wait, _ := strconv.Atoi(w.header.Get("Retry-After"))
	return inbox.Answer{Status: w.status, Wait: time.Duration(wait) * time.Second}
}

// handed is the answer to a request that was handed in, whose body nobody reads.
type handed struct {
	header http.Header
	status int
}

func (h *handed) Header() http.Header { return h.header }

func (h *handed) WriteHeader(status int) {
	if h.status == 0 && status >= http.StatusOK { // 1xx is no answer
		h.status = status
	}
}

func (h *handed) Write(b []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return len(b), nil
}

// initRequests makes the queue whose messages are requests.
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

// triesRequests looks whether the queue is as it must be.
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

// Moves are those of the dead letters of a queue of SQS, which is asked at the server of its URL.
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
