package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/fleet/filestore"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// openStore opens the store that the file names. heard, unless nil, is called for calls that can
// take several requests.
func openStore(ctx context.Context, c config.Store, env func(string) (string, bool), heard func(dynamostore.Call)) (fleet.Store, error) {
	switch c.Kind() {
	case "redis":
		return openRedis(c, env)
	case "dynamodb":
		s, err := openDynamoDB(ctx, c, heard)
		if err == nil {
			_, _, _ = s.Load(ctx, "", nil) // it learns the server's clock, for which no caller should wait
		}
		return s, err
	case "file":
		return filestore.Open(c.File, filestore.Options{})
	}
	return fleet.NewMemory(nil), nil
}

func openRedis(c config.Store, env func(string) (string, bool)) (fleet.Store, error) {
	var password string
	if c.PasswordEnv != "" {
		var ok bool
		if password, ok = env(c.PasswordEnv); !ok {
			return nil, fmt.Errorf("store: password_env: the environment has no %s; set it before weir starts", c.PasswordEnv)
		}
	}
	s, err := redisstore.Open(c.Redis, redisstore.Options{Prefix: c.Prefix, Password: password})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}

func openDynamoDB(ctx context.Context, c config.Store, heard func(dynamostore.Call)) (*dynamostore.Store, error) {
	with := []func(*awsconfig.LoadOptions) error{awsconfig.WithLogger(sdkLog(slog.Default()))}
	if c.DynamoDB.Region != "" {
		with = append(with, awsconfig.WithRegion(c.DynamoDB.Region))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, with...)
	if err != nil {
		return nil, fmt.Errorf("store: dynamodb: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("store: dynamodb: there is no region; say it in the file or in AWS_REGION")
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if c.DynamoDB.Endpoint != "" {
			o.BaseEndpoint = &c.DynamoDB.Endpoint
		}
	})
	return dynamostore.New(client, c.DynamoDB.Table, dynamostore.Options{Observe: heard}), nil
}

// nameOf is a store as errors name it: its kind and where it is, without what is secret of that.
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

// newFleet makes this process a member of the fleet that shares the store. events
// hear of it.
func newFleet(s fleet.Store, c config.Store, events fleet.Events) *fleet.Fleet {
	var silence time.Duration // the usual one
	if c.DynamoDB != nil {
		silence = slowSilence
	}
	return fleet.New(s, fleet.Options{
		Lease: c.Lease, Guard: c.Guard, Timeout: c.Timeout, Queue: c.Queue, Outage: c.Outage, Without: c.Without, Silence: silence, Events: events,
	})
}

// slowSilence is after how long without an answer of DynamoDB a process takes it for away: each
// beat is paid for.
const slowSilence = 10 * time.Second

// initTime bounds weir store init: a table of DynamoDB takes half a minute.
const initTime = 5 * time.Minute

// Init makes the stores of a file ready, that of limits for limits that nobody has used yet, and says to out what it does.
func Init(ctx context.Context, out io.Writer, file *config.File, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, initTime)
	defer cancel()
	o = o.withDefaults()
	if d := file.Deliveries; d != nil && d.Postgres != nil {
		if err := initDeliveries(ctx, out, d, o); err != nil {
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
		fmt.Fprintf(out, "making the table %s, and waiting until it forgets old items (TTL), which may take some minutes\n", file.Store.DynamoDB.Table)
		err := t.Create(ctx)
		if late, ok := errors.AsType[*dynamostore.TTLError](err); ok {
			fmt.Fprintf(out, "%v; weir store init can be run again to see whether it is enabled\n", late)
		} else if err != nil {
			return fmt.Errorf("%s cannot be made ready: %w", nameOf(*file.Store), err)
		}
	}
	groups := []string{config.CallersName}
	for _, u := range file.Upstreams {
		groups = append(groups, u.Name)
	}
	for _, group := range groups {
		if err := s.Init(ctx, group); err != nil {
			return fmt.Errorf("%s cannot be made ready: %w", nameOf(*file.Store), err)
		}
	}
	fmt.Fprintf(out, "the store (%s) is ready: limits that it knows nothing of start full\n", file.Store.Kind())
	return nil
}
