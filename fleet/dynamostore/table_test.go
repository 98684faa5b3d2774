package dynamostore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// A ttlTable is a table with TTL, which emulators lack. Like DynamoDB, it declines changes of the TTL while the
// table is busy, and takes time to enable it.
type ttlTable struct {
	API
	status types.TimeToLiveStatus
	busy   []error       // errors of the next updates
	takes  time.Duration // from Enabling to Enabled

	now     time.Duration
	asked   int
	enabled time.Duration // when it becomes enabled
}

func (f *ttlTable) CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return nil, &types.ResourceInUseException{}
}

func (f *ttlTable) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &types.TableDescription{
		TableStatus: types.TableStatusActive, KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("k")}},
	}}, nil
}

func (f *ttlTable) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	if f.status == types.TimeToLiveStatusEnabling && f.now >= f.enabled {
		f.status = types.TimeToLiveStatusEnabled
	}
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: &types.TimeToLiveDescription{TimeToLiveStatus: f.status}}, nil
}

func (f *ttlTable) UpdateTimeToLive(_ context.Context, in *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	f.asked++
	if len(f.busy) > 0 {
		err := f.busy[0]
		f.busy = f.busy[1:]
		return nil, err
	}
	if s := in.TimeToLiveSpecification; aws.ToString(s.AttributeName) != "ttl" || !aws.ToBool(s.Enabled) {
		return nil, errors.New("it asks for something else")
	}
	f.status, f.enabled = types.TimeToLiveStatusEnabling, f.now+f.takes
	return &dynamodb.UpdateTimeToLiveOutput{}, nil
}

// create creates the table with a timeout.
func (f *ttlTable) create(patience time.Duration) error {
	s := New(f, "weir", Options{})
	s.o.sleep = func(_ context.Context, d time.Duration) error {
		if f.now += d; f.now > patience {
			return context.DeadlineExceeded
		}
		return nil
	}
	return s.Create(context.Background())
}

func TestTTLIsAskedForUntilItIsEnabled(t *testing.T) {
	invalid := &smithy.GenericAPIError{Code: "ValidationException", Message: "Time to live has been modified multiple times within a fixed interval"}
	for name, f := range map[string]*ttlTable{
		"a new table":       {status: types.TimeToLiveStatusDisabled, takes: time.Minute},
		"at once":           {status: types.TimeToLiveStatusDisabled},
		"being enabled":     {status: types.TimeToLiveStatusEnabling, enabled: time.Hour},
		"there already":     {status: types.TimeToLiveStatusEnabled},
		"a busy table":      {status: types.TimeToLiveStatusDisabled, busy: []error{&types.ResourceInUseException{}, &types.LimitExceededException{}}},
		"changed just now":  {status: types.TimeToLiveStatusDisabling, busy: slices.Repeat([]error{invalid}, 50), takes: time.Minute},
		"throttled for now": {status: types.TimeToLiveStatusDisabled, busy: slices.Repeat([]error{refusing("ThrottlingException")}, 4)},
	} {
		refused, asks := len(f.busy), f.status != types.TimeToLiveStatusEnabled && f.status != types.TimeToLiveStatusEnabling
		err := f.create(3 * time.Hour)
		if err != nil || f.status != types.TimeToLiveStatusEnabled {
			t.Errorf("%s: it is %v, %v", name, f.status, err)
		}
		if want := refused + 1; asks && f.asked != want || !asks && f.asked > 0 {
			t.Errorf("%s: asked for %d times, want %d", name, f.asked, want)
		}
	}
}

func TestATableWithoutTTLIsSaidToBe(t *testing.T) {
	f := &ttlTable{status: types.TimeToLiveStatusDisabled, takes: time.Hour}
	err := f.create(time.Minute)
	if e, ok := errors.AsType[*TTLError](err); !ok || e.Status != types.TimeToLiveStatusEnabling || !strings.Contains(err.Error(), "ENABLING") {
		t.Errorf("got %v, want to be told that it is being enabled", err)
	}
	f = &ttlTable{status: types.TimeToLiveStatusDisabled, busy: []error{refusing("AccessDeniedException")}}
	if err := f.create(time.Hour); err == nil || f.asked != 1 {
		t.Errorf("%v after %d asks, want the error at once when there is no permission", err, f.asked)
	}
	f = &ttlTable{status: types.TimeToLiveStatusDisabled, busy: []error{refusing("UnknownOperationException")}}
	if err := f.create(time.Hour); err != nil {
		t.Errorf("an emulator that lacks it: %v", err)
	}
}

func refusing(code string) error { return &smithy.GenericAPIError{Code: code, Message: "no"} }

func TestCheckTTLFailsForTableThatForgetsNothing(t *testing.T) {
	for status, good := range map[types.TimeToLiveStatus]bool{
		types.TimeToLiveStatusEnabled: true, types.TimeToLiveStatusEnabling: true, types.TimeToLiveStatusDisabled: false, types.TimeToLiveStatusDisabling: false,
	} {
		f := &ttlTable{status: status}
		err := New(f, "weir", Options{}).CheckTTL(t.Context())
		if (err == nil) != good || f.asked > 0 {
			t.Errorf("%s: %v", status, err)
		}
	}
}
