// Package stores opens the store that a configuration names, and joins the fleet that shares it.
package stores

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/dynamostore"
	"github.com/seed1158cd35/weir/fleet/filestore"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// Options configure the opening of a store, in addition to the configuration.
type Options struct {
	Env   func(string) (string, bool)
	Heard func(dynamostore.Call) // is called for calls that may need several requests; may be nil
	Log   logging.Logger         // of the AWS SDK
	HTTP  aws.HTTPClient         // of the AWS SDK; nil means the SDK's own
}

// Open opens the store that the configuration names.
func Open(ctx context.Context, c config.Store, o Options) (fleet.Store, error) {
	switch c.Kind() {
	case "redis":
		return openRedis(c, o.Env)
	case "dynamodb":
		s, err := openDynamoDB(ctx, c, o)
		if err == nil {
			_, _, _ = s.Load(ctx, "", nil) // measures the server's clock, so that no caller has to wait for it
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
			return nil, fmt.Errorf("store: password_env: environment variable %s is not set; set it before weir starts", c.PasswordEnv)
		}
	}
	s, err := redisstore.Open(c.Redis, redisstore.Options{Prefix: c.Prefix, Password: password})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}

func openDynamoDB(ctx context.Context, c config.Store, o Options) (*dynamostore.Store, error) {
	with := []func(*awsconfig.LoadOptions) error{awsconfig.WithLogger(o.Log)}
	if o.HTTP != nil {
		with = append(with, awsconfig.WithHTTPClient(o.HTTP))
	}
	if c.DynamoDB.Region != "" {
		with = append(with, awsconfig.WithRegion(c.DynamoDB.Region))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, with...)
	if err != nil {
		return nil, fmt.Errorf("store: dynamodb: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("store: dynamodb: no AWS region: set region in the file, or AWS_REGION")
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if c.DynamoDB.Endpoint != "" {
			o.BaseEndpoint = &c.DynamoDB.Endpoint
		}
	})
	return dynamostore.New(client, c.DynamoDB.Table, dynamostore.Options{Observe: o.Heard}), nil
}

// Fleet makes this process a member of the fleet that shares the store, with the configuration's settings.
func Fleet(s fleet.Store, c config.Store, o fleet.Options) *fleet.Fleet {
	return fleet.New(s, FleetOptions(c, o))
}

// FleetOptions returns o with the configuration's settings.
func FleetOptions(c config.Store, o fleet.Options) fleet.Options {
	o.Lease, o.Guard, o.Timeout, o.Queue, o.Outage, o.Without = c.Lease, c.Guard, c.Timeout, c.Queue, c.Outage, c.Without
	return o
}
