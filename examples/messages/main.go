// Command messages accepts messages, stores them, and delivers them to ntfy within its limits. README.md describes it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/lambdax"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/postgres"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/observe/notify"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	start := func() error { return run(ctx, os.Args[1:], os.Stderr) }
	if handler := os.Getenv("_HANDLER"); handler != "" { // set by AWS Lambda
		start = func() error { return runFunction(ctx, handler, os.Stderr) }
	}
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Options are the values of the flags.
type Options struct {
	Listen, File, Postgres, Ntfy, Topic, Policy, Schedule string
	JWKS, Issuer, Audience                                string
	Choices                                               Choices
	Base                                                  http.RoundTripper // sends to ntfy; nil means the default transport
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o Options
	f := flag.NewFlagSet("messages", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8090", "where to serve")
	f.StringVar(&o.File, "file", "messages.db", "the file that keeps messages, of this process alone")
	f.StringVar(&o.Postgres, "postgres", "", "the database that keeps them instead, for several processes: postgres://...")
	f.StringVar(&o.Ntfy, "ntfy", "", "a server of ntfy's; empty is that of the policy")
	f.StringVar(&o.Topic, "topic", "", "messages go to TOPIC-dev, TOPIC-stage and TOPIC-prod")
	f.StringVar(&o.Policy, "policy", "", "a weir.yaml with the upstream ntfy; empty is the preset's")
	f.StringVar(&o.Schedule, "schedule", "", "a file of messages that are created by the clock")
	f.StringVar(&o.JWKS, "jwks", "", "the URL of the keys that tokens are signed with")
	f.StringVar(&o.Issuer, "issuer", "", "who issues tokens")
	f.StringVar(&o.Audience, "audience", "messages", "whom they are for")
	f.StringVar(&o.Choices.Open, "open", "fail", "while ntfy's breaker is open messages fail, or wait")
	f.StringVar(&o.Choices.Lost, "lost", "again", "a message whose answer was lost goes again, or its sending is to stop")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.Topic == "" || o.JWKS == "" || o.Issuer == "" {
		return errors.New("want -topic, -jwks and -issuer; see -help")
	}
	return Serve(ctx, o, slog.New(slog.NewJSONHandler(out, nil)))
}

// Serve runs the API, the worker and the schedule until ctx ends.
func Serve(ctx context.Context, o Options, log *slog.Logger) error {
	alerts, err := newAlerts(log)
	if err != nil {
		return err
	}
	if alerts != nil {
		defer func() { // send the remaining notifications
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = alerts.Close(ctx)
		}()
	}
	ntfy, err := NewNtfy(o.Policy, o.Ntfy, o.Choices, log, alerts, o.Base)
	if err != nil {
		return err
	}
	entries, err := ReadSchedule(o.Schedule)
	if err != nil {
		return err
	}
	queue, err := openQueue(ctx, o)
	if err != nil {
		return err
	}
	defer queue.Close()
	store := &Deliveries{ntfy.Worker(queue), o.Topic}
	web, err := NewWeb(ctx, o, store, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return err
	}
	log.Info("serves", "address", listener.Addr().String())

	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() { store.Worker.Run(ctx) })
	all.Go(func() { (&Schedule{entries, store, log, time.Hour}).Run(ctx) })
	server := &http.Server{Handler: web, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, IdleTimeout: time.Minute}
	all.Go(func() {
		<-ctx.Done()
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = server.Shutdown(within)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// NewWeb returns the API, for a listener and for API Gateway.
func NewWeb(ctx context.Context, o Options, store Store, log *slog.Logger) (*lambdax.Web, error) {
	tokens, err := NewTokens(ctx, o.JWKS, o.Issuer, o.Audience, log, nil)
	if err != nil {
		return nil, err
	}
	callers, err := weir.New("messages", weir.Policy{MaxWait: -1, Limits: []limit.Limit{
		{Name: "messages", Scope: "caller", Rate: bucket.Rate{Amount: 60, Per: time.Minute, Burst: 60}},
	}}, weir.Options{})
	if err != nil {
		return nil, err
	}
	api := &API{Store: store, Tokens: tokens, Callers: callers, Metrics: &Metrics{Store: store}}
	return lambdax.NewWeb(lambdax.WebOptions{Handle: api.Handle, Log: log})
}

func openQueue(ctx context.Context, o Options) (delivery.Queue, error) {
	if o.Postgres != "" {
		db, err := postgres.New(postgres.Options{URL: o.Postgres})
		if err == nil {
			_, err = db.Init(ctx) // creates missing tables
		}
		return db, err
	}
	return sqlite.Open(ctx, o.File, sqlite.Options{})
}

// newAlerts returns a notifier that calls the webhook ALERTS_URL and signs with ALERTS_SECRET. It returns nil if ALERTS_URL is
// empty.
func newAlerts(log *slog.Logger) (*notify.Notifier, error) {
	url := os.Getenv("ALERTS_URL")
	if url == "" {
		return nil, nil
	}
	hook, err := notify.NewWebhook(notify.Webhook{URL: notify.Secret(url), Secret: notify.Secret(os.Getenv("ALERTS_SECRET"))})
	if err != nil {
		return nil, err
	}
	return notify.New(notify.Config{Targets: []notify.Target{hook}, Log: log})
}
