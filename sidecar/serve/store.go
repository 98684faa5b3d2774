package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/stores"
)

// openStore opens the store that the file names. heard, unless nil, is called for calls that may need several requests.
func openStore(ctx context.Context, c config.Store, env func(string) (string, bool), heard func(dynamostore.Call)) (fleet.Store, error) {
	return stores.Open(ctx, c, stores.Options{Env: env, Heard: heard, Log: sdkLog(slog.Default())})
}

// nameOf describes a store in errors: its kind and address, without secrets.
func nameOf(c config.Store) string {
	switch c.Kind() {
	case "redis":
		u, err := url.Parse(c.Redis)
		if err != nil || u.Host == "" {
			return "store redis"
		}
		return fmt.Sprintf("store redis at %s://%s", u.Scheme, u.Host)
	case "dynamodb":
		return "store dynamodb, table " + c.DynamoDB.Table
	case "file":
		return "store file " + c.File
	}
	return "store " + c.Kind()
}

// initTime limits weir store init. Creating a DynamoDB table takes half a minute.
const initTime = 5 * time.Minute

// Init creates the stores of a file. It writes its progress to out. Limits without a record start full.
func Init(ctx context.Context, out io.Writer, file *config.File, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, initTime)
	defer cancel()
	o = o.withDefaults()
	if d := file.Deliveries; d.InFleet() {
		if err := initDeliveries(ctx, out, d, o); err != nil {
			return err
		}
	}
	if d := file.Deliveries; d != nil && d.Requests != nil {
		if err := initRequests(ctx, out, d.Requests); err != nil {
			return err
		}
	}
	if file.Store == nil {
		return nil
	}
	return initStore(ctx, out, file, o)
}

func initStore(ctx context.Context, out io.Writer, file *config.File, o Options) error {
	s, err := openStore(ctx, *file.Store, o.Env, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	if t, ok := s.(*dynamostore.Store); ok {
		fmt.Fprintf(out, "creating the table %s and enabling TTL, which may take some minutes\n", file.Store.DynamoDB.Table)
		err := t.Create(ctx)
		if late, ok := errors.AsType[*dynamostore.TTLError](err); ok {
			fmt.Fprintf(out, "%v; run weir store init again to check whether it is enabled\n", late)
		} else if err != nil {
			return fmt.Errorf("%s cannot be prepared: %w", nameOf(*file.Store), err)
		}
	}
	groups := []string{config.CallersName}
	for _, u := range file.Upstreams {
		groups = append(groups, u.Name)
	}
	for _, group := range groups {
		if err := s.Init(ctx, group); err != nil {
			return fmt.Errorf("%s cannot be prepared: %w", nameOf(*file.Store), err)
		}
	}
	// A store that can lose its memory lists its upstreams, so that upstreams that are added later start full.
	if r, ok := s.(interface {
		Register(ctx context.Context, groups ...string) error
	}); ok {
		if err := r.Register(ctx, groups...); err != nil {
			return fmt.Errorf("%s cannot be prepared: %w", nameOf(*file.Store), err)
		}
	}
	fmt.Fprintf(out, "the store (%s) is ready: limits without a record start full, including those of upstreams that are added later\n", file.Store.Kind())
	return nil
}
