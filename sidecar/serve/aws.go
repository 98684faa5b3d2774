package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/sidecar/awsdialect"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// dialects holds the AWS dialects of the current upstreams. A dialect with an unchanged configuration keeps its
// credentials.
type dialects struct {
	log logging.Logger // for the SDK

	mu    sync.Mutex
	known map[config.AWS]signer
	names map[string]signer // by upstream
}

// A signer is a dialect with its signing credentials.
type signer struct {
	dialect *awsdialect.Dialect
	keys    aws.CredentialsProvider
}

// keys returns the credentials of the current upstreams.
func (d *dialects) keys() map[string]aws.CredentialsProvider {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[string]aws.CredentialsProvider)
	for name, s := range d.names {
		if s.keys != nil {
			all[name] = s.keys
		}
	}
	return all
}

// apply sets the dialects of a file's upstreams. put makes them the current ones.
func (d *dialects) apply(file *config.File) (put func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, names, kept := make(map[config.AWS]signer), make(map[string]signer), make(map[*rotating]bool)
	for i := range file.Upstreams {
		u := &file.Upstreams[i]
		c, ok := file.AWS[u.Name]
		if !ok {
			continue
		}
		if next[c] = d.known[c]; next[c].dialect == nil {
			made, err := newSigner(c, d.log)
			if err != nil {
				return nil, fmt.Errorf("upstream %s: aws: %w", u.Name, err)
			}
			next[c] = made
		} else if keys, ok := next[c].keys.(*rotating); ok {
			kept[keys] = true
		}
		u.Dialect, names[u.Name] = httpx.Dialect(next[c].dialect), next[c]
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.known, d.names = next, names
		for keys := range kept {
			go keys.Reload(context.Background())
		}
	}, nil
}

// newSigner finds credentials as the SDKs do. It does not load them yet: calls that need missing credentials get the
// error, and watchKeys reports it.
func newSigner(c config.AWS, log logging.Logger) (signer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	keys, err := newRotating(ctx, func(ctx context.Context) (aws.CredentialsProvider, error) { return credentialsOf(ctx, c, log) })
	if err != nil {
		return signer{}, err
	}
	made, err := awsdialect.New(awsdialect.Options{
		Options: resign.Options{Service: c.Service, Region: c.Region, Credentials: keys, RefusePresigned: c.RefusePresigned}, PrefixDepth: c.PrefixDepth, Shards: c.Shards,
	})
	return signer{made, keys}, err
}

// credentialsOf finds credentials as the SDKs do.
func credentialsOf(ctx context.Context, c config.AWS, log logging.Logger) (aws.CredentialsProvider, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, func(o *awsconfig.LoadOptions) error { o.Region, o.Logger = c.Region, log; return nil })
	if err != nil || c.Role == "" {
		return cfg.Credentials, err
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1" // can assume roles for any region of the service
	}
	return aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), c.Role, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = "weir"
		if c.ExternalID != "" {
			o.ExternalID = &c.ExternalID
		}
	}), func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow, o.ExpiryWindowJitterFrac = 5*time.Minute, 0.5 }), nil
}
