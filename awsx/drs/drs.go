// Package drs is a client of AWS Elastic Disaster Recovery that stays inside its quotas
// (10 requests a second, bursts of 20, for each account and region), repeats what can be
// repeated, and never starts a recovery twice.
//
//	client := drs.New(cfg, drs.Options{})
//	out, err := client.StartRecovery(ctx, in)
//
// It is the SDK's client with other manners: whatever takes one takes this, paginators
// included, which are paced page by page. Of a call that DRS does not answer for good,
// StartRecovery and TerminateRecoveryInstances find out what became of it; see there.
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

// Options are how a client behaves. All clients of one process share the limits of an account and region, whatever
// their other options and credentials; of different rates, the lowest applies. Clients with a Guard or a Fleet are
// charged to the limits of those.
type Options struct {
	// Guard is under whose limits and retries calls are made; nil means a guard of the
	// client's own, which the next ten fields describe.
	Guard *awsx.Guard

	// Fleet shares the limits with other processes; nil means that there are none. Set the Account then, unless the
	// credentials tell it. Where neither does, all clients whose credentials have the same source (the provider, and
	// its role) count as one account.
	Fleet   *fleet.Fleet
	Account string

	// Rate is how much is sent to an account and region; zero means 10 requests a second with a burst of 20, as DRS
	// allows. See Spared.
	Rate    bucket.Rate
	MaxWait time.Duration // longest wait for a turn; 0 means 30s, below 0 means none

	Timeout  time.Duration // of one attempt; 0 means 30s, below 0 means none
	Attempts int           // in all, the first included; 0 means 6
	Base     time.Duration // before the second, and then twice as long each time, times 0.5 to 1.5; 0 means 1s
	Cap      time.Duration // longest wait between attempts, before chance is added; 0 means 1m

	Events weir.Events
	ID     func(context.Context) string // the correlation id of a call; nil means the SDK's own

	// LookFor is how long the job of a call is looked for that was not answered; 0 means
	// 30s, below 0 means that it is not looked for.
	LookFor time.Duration

	// Untagged starts recoveries without a tag of their own: see StartRecovery.
	Untagged bool

	Clock clock.Clock // nil means the system's

	// Client changes the SDK's client.
	Client []func(*sdk.Options)
}

// Spared is the rate of DRS with a burst of 18 of its 20: what is held back makes up for requests that take up to 200ms
// less on their way than the first ones, which have to connect. None is throttled then; with all 20 some of the
// first calls after a rest are, and go a second later.
var Spared = bucket.Rate{Amount: 10, Per: time.Second, Burst: 18}

// A Client calls DRS. It is safe for concurrent use.
type Client struct {
	*sdk.Client
	lookFor  time.Duration
	untagged bool
	clock    clock.Clock
	own      *awsx.Guard // nil if it was given
}

var (
	_ sdk.DescribeJobsAPIClient              = (*Client)(nil)
	_ sdk.DescribeSourceServersAPIClient     = (*Client)(nil)
	_ sdk.DescribeRecoveryInstancesAPIClient = (*Client)(nil)
)

// New makes a client of a configuration.
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

// Close takes the client out of the fleet, if it is in one by its own guard.
func (c *Client) Close() {
	if c.own != nil {
		c.own.Close()
	}
}

// guard is one for a client that is given none.
func (o *Options) guard(cfg *aws.Config) *awsx.Guard {
	return awsx.New(awsx.Options{
		Account:  o.Account,
		BySource: true,
		ID:       o.ID,
		Policy:   func(awsx.Target) weir.Policy { return o.policy() },
		Upstream: weir.Options{Clock: o.Clock, Events: o.Events, Fleet: o.Fleet, Limits: limitsOf(cfg, o.Clock)},
	})
}

// policy is the preset of DRS with what the options change.
func (o *Options) policy() weir.Policy {
	p := awsx.Preset("drs")
	p.Limits = []limit.Limit{{Name: "requests", Rate: cmp.Or(o.Rate, bucket.Rate{Amount: 10, Per: time.Second, Burst: 20})}}
	p.MaxWait = cmp.Or(o.MaxWait, p.MaxWait)
	p.Timeouts.Attempt = cmp.Or(o.Timeout, 30*time.Second)
	p.Retry.Attempts = cmp.Or(o.Attempts, p.Retry.Attempts)
	p.Retry.Base, p.Retry.Cap = cmp.Or(o.Base, p.Retry.Base), cmp.Or(o.Cap, p.Retry.Cap)
	p.Retry.NotCodes = append(slices.Clone(p.Retry.NotCodes), "no such host") // there is no such region
	return p
}
