package dynamosqs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery/dynamosqs"
)

// A ttlTable simulates the TTL of DynamoDB, which refuses to enable it twice.
type ttlTable struct {
	dynamosqs.Table
	status types.TimeToLiveStatus
}

func (f *ttlTable) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: &types.TimeToLiveDescription{TimeToLiveStatus: f.status}}, nil
}

func (f *ttlTable) UpdateTimeToLive(_ context.Context, in *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	if s := in.TimeToLiveSpecification; f.status == types.TimeToLiveStatusEnabled || aws.ToString(s.AttributeName) != "ttl" || !aws.ToBool(s.Enabled) {
		return nil, errors.New("ValidationException: TimeToLive is already enabled")
	}
	f.status = types.TimeToLiveStatusEnabled
	return &dynamodb.UpdateTimeToLiveOutput{}, nil
}

// CheckTTL finds a table without TTL, and Init enables it on an existing table.
func TestInitEnablesTTLOfExistingTable(t *testing.T) {
	f := &ttlTable{Table: ofTables(), status: types.TimeToLiveStatusDisabled}
	s := open(t, dynamosqs.Options{Table: f, Name: name()})
	for _, status := range []types.TimeToLiveStatus{types.TimeToLiveStatusDisabled, types.TimeToLiveStatusDisabling} {
		f.status = status
		if _, is := errors.AsType[*dynamosqs.SchemaError](s.CheckTTL(t.Context())); !is {
			t.Errorf("%s: %v, want a SchemaError", status, s.CheckTTL(t.Context()))
		}
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("%s: %v; deliveries work without TTL", status, err)
		}
		if made, err := s.Init(t.Context()); made || err != nil || f.status != types.TimeToLiveStatusEnabled {
			t.Errorf("%s: made %v, %v, then %s", status, made, err, f.status)
		}
		if err := s.CheckTTL(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
