package drs

import (
	"context"
	"crypto/rand"
	"maps"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/aws-sdk-go-v2/service/drs/types"
)

// CallTag is the tag that identifies the job of one call of StartRecovery.
const CallTag = "weir:call"

// mostTags is the maximum number of tags of an AWS resource.
const mostTags = 50

// StartRecovery starts a recovery once. After a response that proves that no recovery was started, such as a throttle, it repeats
// the request. After a 500 or 503 it repeats the request once, under two conditions: three DescribeJobs over a minute list no job
// for these servers since the request, and ctx leaves enough time. After any other unclear result, such as a timeout or a broken
// connection, it does not repeat the request. It looks for the job with DescribeJobs and returns it if there is one. Otherwise
// the job may still appear: the error is then an *UnknownError, which describes what to check.
//
// DRS has no idempotency token, so each job gets a unique tag, CallTag, in addition to the tags of the input. AWS requires the
// permission drs:TagResource for that. With Options.Untagged, or if the input already has the maximum number of tags, there is no
// such tag. Then a job that may belong to the call is not returned, but listed in the UnknownError.
//
// If the caller leaves or its deadline passes while it waits for the response, it gets the job or the UnknownError within five
// seconds.
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

// startOnce sends the request until an attempt may have had an effect.
func (c *Client) startOnce(ctx context.Context, call *sdk.StartRecoveryInput, options []func(*sdk.Options)) (*sdk.StartRecoveryOutput, *attempts, error) {
	a := &attempts{once: true}
	out, err := c.Client.StartRecovery(ctx, call, a.on(options)...)
	return out, a, err
}

// unknown reports whether the result leaves open if a recovery was started.
func (a *attempts) unknown(out *sdk.StartRecoveryOutput, err error) bool {
	if err != nil {
		return a.doubt != nil
	}
	return out.Job == nil
}

// Recovery looks once for the job with the tag of an UnknownError. It returns nil if DRS does not list the job, or not yet.
func (c *Client) Recovery(ctx context.Context, tag string) (*types.Job, error) {
	found, err := c.listed(ctx, 0, func(j *types.Job, _ bool) bool { return tag != "" && j.Tags[CallTag] == tag })
	if len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// tagged returns the input with a unique tag, or without one if there is no room.
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

// started returns a match for jobs that the call started. Without a tag, it matches jobs that the call may have started. fresh
// means that the job was created since the call began.
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

// within reports whether there contains all tags.
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
