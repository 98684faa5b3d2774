// Package awsx applies policies to the clients of aws-sdk-go-v2. One call on a configuration is enough. Every operation of every
// service then waits for its turn, is retried if that is useful and safe, and fails fast while the service is unavailable.
//
//	guard := awsx.New(awsx.Options{})
//	guard.Attach(&cfg)
//	client := s3.NewFromConfig(cfg) // as always
//
// Each account, region and service has its own upstream, which is made on first use. All limits of an operation apply before
// every attempt. Weir's retries replace the SDK's, so that attempts do not multiply, whatever Retryer a client has. If weir
// refuses a call, the error is a *weir.Refusal. If weir gives up, it is a *retry.GaveUpError that wraps the SDK's error.
//
// A throttled attempt had no effect and is repeated. An attempt that failed, or whose response was lost, is repeated if that does
// no harm. That is the case for reads, for requests with a token (the SDK fills in many), and for operations that have the same
// effect when done twice, see package wire. For DynamoDB that includes PutItem and DeleteItem but not UpdateItem, which may
// count. The SDK repeats all three. A body that is not an io.Seeker is sent once.
//
// When the SDK requests a role, or a session with a bucket, that is a separate call. If it fails, the call that needed it fails,
// but the failure is not attributed to that call's service. The SDK still corrects a wrong clock.
package awsx

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/middleware"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/scopes"
)

// Options configure a Guard. The zero Options apply the quotas that AWS publishes, see Preset.
type Options struct {
	// Policy returns the policy of a service; nil means Preset. It is called once for each target.
	Policy func(Target) weir.Policy

	// Account is the account of the credentials. "" means the account in the credentials, which role credentials contain. Without
	// one, all credentials of one source (the provider, and its role) count as one account, except that each static key counts as
	// an account.
	Account string

	// BySource also counts static credentials of an unknown account as one account.
	BySource bool

	// ID returns the correlation ID of a call for events and logs. If it is nil or returns "", the SDK's ID of the call is used
	// (Amz-Sdk-Invocation-Id).
	ID func(context.Context) string

	// PrefixDepth is the number of slashes in the prefix of an S3 key; 0 means 1.
	PrefixDepth int

	Upstream weir.Options
}

// A Target has separate limits.
type Target struct{ Account, Region, Service string }

// String returns the name of the target's upstream: aws/s3/eu-west-1/123456789012.
func (t Target) String() string { return "aws/" + t.Service + "/" + t.Region + "/" + t.Account }

// A Guard applies policies to the clients of a program. It is safe for concurrent use.
type Guard struct {
	o  Options
	mu sync.Mutex
	up sync.Map // Target -> *upstream
}

// An upstream is the upstream of a target.
type upstream struct {
	*weir.Upstream
	target  Target
	scopes  []string // of its limits and breaker, except the scopes that every call has
	places  sync.Map // operation -> the keys of every call of the operation
	counted bool     // limits count items
	bounded bool     // attempts have a timeout
	depth   int      // slashes in a prefix
	numbers []string // values of the attempt header
}

// New returns a guard.
func New(o Options) *Guard {
	if o.Policy == nil {
		o.Policy = func(t Target) weir.Policy { return Preset(t.Service) }
	}
	return &Guard{o: o}
}

// Attach puts all clients that are later created from a configuration under the guard. It replaces a guard that was attached
// before. The account comes from the configuration's credentials, so set them first. A client with other credentials needs
// Option. The Retryer of the configuration or a client is not used: the policy decides about retries.
func (g *Guard) Attach(cfg *aws.Config) { g.attach(cfg, g.o.Account) }

func (g *Guard) attach(cfg *aws.Config, account string) {
	a := newAttached(g, account, cfg.Credentials)
	cfg.APIOptions = append(cfg.APIOptions[:len(cfg.APIOptions):len(cfg.APIOptions)], a.add)
}

// Option puts one client under the guard, and replaces the guard of its configuration. It must be the last of the client's
// APIOptions.
func (g *Guard) Option(credentials aws.CredentialsProvider) func(*middleware.Stack) error {
	return newAttached(g, g.o.Account, credentials).add
}

// Upstream returns the upstream of a target, and creates it if necessary. A policy that is set later must not have scopes, units
// or timeouts that the first policy lacks.
func (g *Guard) Upstream(t Target) (*weir.Upstream, error) {
	u, err := g.upstream(t)
	if err != nil {
		return nil, err
	}
	return u.Upstream, nil
}

func (g *Guard) upstream(t Target) (*upstream, error) {
	if u, ok := g.up.Load(t); ok {
		return u.(*upstream), nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if u, ok := g.up.Load(t); ok {
		return u.(*upstream), nil
	}
	p := g.o.Policy(t)
	p.Undeclared = true // the SDK names the operations
	u, err := weir.New(t.String(), p, g.o.Upstream)
	if err != nil {
		return nil, fmt.Errorf("awsx: the policy for %s: %w", t, err)
	}
	timeouts := u.Policy().Timeouts
	made := &upstream{
		Upstream: u, target: t, bounded: timeouts.Attempt > 0 || timeouts.Call > 0,
		depth: cmp.Or(g.o.PrefixDepth, 1), numbers: numbers(p.Retry.WithDefaults().Attempts),
	}
	made.scope(p.BreakerScope)
	for _, l := range p.Limits {
		for _, name := range scopes.Names(l.Scope) {
			made.scope(name)
		}
		made.counted = made.counted || l.Unit == Items || l.Unit == Reads || l.Unit == Writes
	}
	g.up.Store(t, made)
	return made, nil
}

func (u *upstream) scope(s string) {
	if s != "" && s != Account && s != Region && s != Operation && !slices.Contains(u.scopes, s) {
		u.scopes = append(u.scopes, s)
	}
}

// Targets returns the targets that have been called.
func (g *Guard) Targets() (all []Target) {
	g.up.Range(func(t, _ any) bool {
		all = append(all, t.(Target))
		return true
	})
	return all
}

// Close removes the guard's upstreams from their fleet, if they have one.
func (g *Guard) Close() {
	g.up.Range(func(_, u any) bool {
		u.(*upstream).Close()
		return true
	})
}

type attached struct {
	g        *Guard
	account  string
	provider aws.CredentialsProvider
	last     atomic.Pointer[upstream] // most clients use only one
	loop     atomic.Pointer[single]
	source   atomic.Pointer[sourceName]
}

func newAttached(g *Guard, account string, c aws.CredentialsProvider) *attached {
	if account == "" && (c == nil || aws.IsCredentialsProvider(c, (*aws.AnonymousCredentials)(nil))) {
		account = "anonymous"
	}
	return &attached{g: g, account: account, provider: c}
}

func (a *attached) upstream(ctx context.Context, service string) (*upstream, error) {
	t := Target{a.of(ctx), awsmiddleware.GetRegion(ctx), service}
	if u := a.last.Load(); u != nil && u.target == t {
		return u, nil
	}
	u, err := a.g.upstream(t)
	if err == nil {
		a.last.Store(u)
	}
	return u, err
}

// of returns the account whose limits a call counts against. If credentials cannot be retrieved, the SDK reports that when it
// needs them.
func (a *attached) of(ctx context.Context) string {
	if a.account != "" {
		return a.account
	}
	c, err := a.provider.Retrieve(ctx)
	switch {
	case err != nil:
		return "unknown"
	case c.AccountID != "":
		return c.AccountID
	}
	return a.bySource(&c)
}

// bySource returns a name for the source of credentials without an account: the provider's name, with its profile or file, or
// else its type. It does not use the key, because keys are rotated and each new key would begin with full limits.
func (a *attached) bySource(c *aws.Credentials) string {
	kind, source := "source-", c.Source
	switch {
	case source == "":
		source = fmt.Sprintf("%T", a.provider)
	case source == credentials.StaticCredentialsName && !a.g.o.BySource:
		kind, source = "key-", c.AccessKeyID
	}
	if s := a.source.Load(); s != nil && s.source == source {
		return s.name
	}
	sum := sha256.Sum256([]byte(source)) // the source may be a key or the path of a file
	s := &sourceName{source, kind + hex.EncodeToString(sum[:6])}
	a.source.Store(s)
	return s.name
}

type sourceName struct{ source, name string }
