// Package drs is a client for AWS Elastic Disaster Recovery. It respects the quotas (10 requests a second, bursts of 20, for each
// account and region), retries calls if that is safe, and never starts a recovery twice.
//
//	client := drs.New(cfg, drs.Options{})
//	out, err := client.StartRecovery(ctx, in)
//
// A Client can replace the SDK's client everywhere, also in paginators, which then wait for their turn before every page. If the
// result of a call is unclear, StartRecovery and TerminateRecoveryInstances determine it. See their documentation.
package drs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/smithy-go/middleware"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Options configure a client. All clients of a process share the limits of an account and region, even with different options and
// credentials. Of different rates, the lowest applies. Clients with a Guard or a Fleet use the limits of that Guard or Fleet.
type Options struct {
	// Guard provides the limits and retries; nil means a new guard, which the next ten fields configure.
	Guard *awsx.Guard

	// Fleet shares the limits with other processes; nil means no sharing. With a Fleet set the Account, unless the credentials
	// contain it. Without either, all credentials with the same source (the provider, and its role) count as one account.
	Fleet   *fleet.Fleet
	Account string

	// Rate is the request rate for an account and region. Zero means DRS's quota: 10 requests a second with a burst of 20. See
	// Spared.
	Rate    bucket.Rate
	MaxWait time.Duration // maximum wait for a turn; 0 means 30s, negative means no wait

	Timeout  time.Duration // of one attempt; 0 means 30s, negative means none
	Attempts int           // total number of attempts; 0 means 6
	Base     time.Duration // delay before the second attempt, which doubles each time and is multiplied by 0.5 to 1.5; 0 means 1s
	Cap      time.Duration // maximum delay before the random factor; 0 means 1m

	Events weir.Events
	ID     func(context.Context) string // returns the correlation ID of a call; nil means the SDK's

	// LookFor is how long to look for the job of a call that got no response. 0 means 30s, negative means not to look.
	LookFor time.Duration

	// Untagged starts recoveries without a tag that identifies the call: see StartRecovery.
	Untagged bool

	Clock clock.Clock // nil means the system's

	// Client changes the SDK's client.
	Client []func(*sdk.Options)
}

// Spared is the rate of DRS with a burst of 18 instead of 20. The difference compensates for requests that arrive up to 200ms
// faster than the first ones, which have to connect, so that none is throttled. With all 20, some of the first calls after an
// idle time are throttled, and succeed a second later.
var Spared = bucket.Rate{Amount: 10, Per: time.Second, Burst: 18}

// A Client calls DRS. It is safe for concurrent use.
type Client struct {
	*sdk.Client
	lookFor  time.Duration
	untagged bool
	clock    clock.Clock
	own      *awsx.Guard // nil if the options contain a Guard
}

var (
	_ sdk.DescribeJobsAPIClient              = (*Client)(nil)
	_ sdk.DescribeSourceServersAPIClient     = (*Client)(nil)
	_ sdk.DescribeRecoveryInstancesAPIClient = (*Client)(nil)
)

// New returns a client for a configuration.
func New(cfg aws.Config, o Options) *Client {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	var own *awsx.Guard
	if o.Guard == nil {
		own = o.guard(&cfg)
		o.Guard = own
	}
	guarded := cfg.Copy()
	guarded.APIOptions = append(slices.Clone(cfg.APIOptions), func(s *middleware.Stack) error {
		return s.Initialize.Add(explaining{}, middleware.After) // where the region is known
	})
	o.Guard.Attach(&guarded)
	return &Client{
		Client: sdk.NewFromConfig(guarded, o.Client...), lookFor: cmp.Or(o.LookFor, 30*time.Second), untagged: o.Untagged, clock: o.Clock, own: own,
	}
}

// Close removes the client from the fleet, if it has a Fleet and its own guard.
func (c *Client) Close() {
	if c.own != nil {
		c.own.Close()
	}
}

// guard returns a guard for a client without one in its options.
func (o *Options) guard(cfg *aws.Config) *awsx.Guard {
	return awsx.New(awsx.Options{
		Account:  o.Account,
		BySource: true,
		ID:       o.ID,
		Policy:   func(awsx.Target) weir.Policy { return o.policy() },
		Upstream: weir.Options{Clock: o.Clock, Events: o.Events, Fleet: o.Fleet, Limits: limitsOf(cfg, o.Clock)},
	})
}

// policy returns the preset of DRS with the changes in the options.
func (o *Options) policy() weir.Policy {
	p := awsx.Preset("drs")
	p.Limits = []limit.Limit{{Name: "requests", Rate: cmp.Or(o.Rate, bucket.Rate{Amount: 10, Per: time.Second, Burst: 20})}}
	p.MaxWait = cmp.Or(o.MaxWait, p.MaxWait)
	p.Timeouts.Attempt = cmp.Or(o.Timeout, 30*time.Second)
	p.Retry.Attempts = cmp.Or(o.Attempts, p.Retry.Attempts)
	p.Retry.Base, p.Retry.Cap = cmp.Or(o.Base, p.Retry.Base), cmp.Or(o.Cap, p.Retry.Cap)
	p.Retry.NotCodes = append(slices.Clone(p.Retry.NotCodes), "no such host") // the region does not exist
	return p
}
