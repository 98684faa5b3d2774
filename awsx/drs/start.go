package drs

import (
	"context"
	"crypto/rand"
	"maps"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"
)

// CallTag is the tag by which a job is known to be that of one call of StartRecovery.
const CallTag = "weir:call"

// mostTags is how many tags a resource of AWS may have.
const mostTags = 50

// StartRecovery starts a recovery once. An answer that proves that nothing was started, such as a throttle, is repeated.
// After a 500 or 503 the request is repeated once, if three DescribeJobs over a minute show no job for these servers
// since the request, and if ctx leaves the time. After any other end that proves nothing (a timeout, a connection that
// broke) the request is not repeated: its job is looked for with DescribeJobs and, if it is there, returned as the
// answer. If it is not, it may still come: the error is then an *UnknownError, which says what to check.
//
// DRS has no token by which it would recognize a request, so each job gets a tag of its own, CallTag, in addition to
// those of the input. AWS requires the permission drs:TagResource for that. Options.Untagged does without, and so does
// an input that has as many tags as there can be. Then a job that may be the call's is not returned, but listed in the
// UnknownError.
//
// A caller that leaves while the answer is waited for, or whose deadline passes, gets the job or the UnknownError
// within five seconds.
func (c *Client) StartRecovery(ctx context.Context, in *sdk.StartRecoveryInput, options ...func(*sdk.Options)) (*sdk.StartRecoveryOutput, error) {
	if in == nil {
		in = &sdk.StartRecoveryInput{}
	}
	call, tag := c.tagged(in)
	began := c.clock.Now()
	out, a, err := c.startOnce(ctx, call, options)
	if !a.unknown(out, err) {
		return out, err
	}
	if a.broke() && c.absent(ctx, began, call) {
		if out, a, err = c.startOnce(ctx, call, options); !a.unknown(out, err) {
			return out, err
		}
	}
	found, looked := c.find(ctx, began, started(call, tag))
	if tag != "" && len(found) > 0 {
		return &sdk.StartRecoveryOutput{Job: &found[0]}, nil
	}
	e := &UnknownError{Tag: tag, Servers: servers(call), Err: err, Looked: looked}
	for _, j := range found {
		e.Candidates = append(e.Candidates, deref(j.JobID))
	}
	return nil, e
}

// startOnce sends the request until an attempt may have had its effect.
func (c *Client) startOnce(ctx context.Context, call *sdk.StartRecoveryInput, options []func(*sdk.Options)) (*sdk.StartRecoveryOutput, *attempts, error) {
	a := &attempts{once: true}
	out, err := c.Client.StartRecovery(ctx, call, a.on(options)...)
	return out, a, err
}

// unknown reports whether nobody can tell from the answer whether a recovery was started.
func (a *attempts) unknown(out *sdk.StartRecoveryOutput, err error) bool {
	if err != nil {
		return a.doubt != nil
	}
	return out.Job == nil
}

// Recovery looks once for the job of a call that ended in an UnknownError with the tag.
// It is nil if DRS does not list it, or not yet.
func (c *Client) Recovery(ctx context.Context, tag string) (*types.Job, error) {
	found, err := c.listed(ctx, 0, func(j *types.Job, _ bool) bool { return tag != "" && j.Tags[CallTag] == tag })
	if len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// tagged is the input with a tag of its own, or without one where there is no room.
func (c *Client) tagged(in *sdk.StartRecoveryInput) (call *sdk.StartRecoveryInput, tag string) {
	if _, has := in.Tags[CallTag]; c.untagged || !has && len(in.Tags) >= mostTags {
		return in, ""
	}
	tag = rand.Text()
	with := *in
	with.Tags = maps.Clone(in.Tags)
	if with.Tags == nil {
		with.Tags = make(map[string]string, 1)
	}
	with.Tags[CallTag] = tag
	return &with, tag
}

// started reports of a job whether the call started it or, without a tag, may have: fresh
// says that it was created since.
func started(call *sdk.StartRecoveryInput, tag string) match {
	if tag != "" {
		return func(j *types.Job, _ bool) bool { return j.Tags[CallTag] == tag }
	}
	by := types.InitiatedByStartRecovery
	if call.IsDrill != nil && *call.IsDrill {
		by = types.InitiatedByStartDrill
	}
	want := servers(call)
	return func(j *types.Job, fresh bool) bool {
		return fresh && j.Type == types.JobTypeLaunch && j.InitiatedBy == by && takesPart(j, want, serverID) && within(call.Tags, j.Tags)
	}
}

func servers(call *sdk.StartRecoveryInput) (ids []string) {
	for _, s := range call.SourceServers {
		ids = append(ids, deref(s.SourceServerID))
	}
	return ids
}

func serverID(s types.ParticipatingServer) *string { return s.SourceServerID }

// within reports whether all of the tags are there.
func within(tags, there map[string]string) bool {
	for k, v := range tags {
		if got, ok := there[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
