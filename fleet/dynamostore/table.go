package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Create creates the table if it does not exist, and waits until it is usable. The table uses on-demand capacity,
// and DynamoDB removes items a week after their last use. Create changes only the TTL of an existing table.
func (s *Store) Create(ctx context.Context) error {
	w := &work{Call: Call{Op: "create"}, begin: s.o.now()}
	err := s.createTable(ctx, w)
	if err == nil {
		err = s.active(ctx, w)
	}
	if err == nil {
		err = s.expire(ctx, w)
	}
	return s.end(w, err)
}

func (s *Store) createTable(ctx context.Context, w *work) error {
	err := s.try(ctx, w, func() error {
		_, err := s.api.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: &s.table, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
		}, s.options)
		return err
	})
	if _, there := errors.AsType[*types.ResourceInUseException](err); there {
		return nil
	}
	return err
}

// active waits until the table is active, and checks its key.
func (s *Store) active(ctx context.Context, w *work) error {
	for {
		var out *dynamodb.DescribeTableOutput
		err := s.try(ctx, w, func() (err error) {
			out, err = s.api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table}, s.options)
			return err
		})
		_, missing := errors.AsType[*types.ResourceNotFoundException](err)
		if err != nil && !missing { // a new table is not visible immediately
			return err
		}
		if err == nil && out.Table != nil && out.Table.TableStatus == types.TableStatusActive {
			return ours(out.Table)
		}
		if err := s.o.sleep(ctx, 20*time.Millisecond+s.o.jitter(200*time.Millisecond)); err != nil {
			return err
		}
	}
}

func ours(t *types.TableDescription) error {
	if k := t.KeySchema; len(k) != 1 || aws.ToString(k[0].AttributeName) != "k" {
		return fmt.Errorf("the table exists with another key; weir needs only the partition key \"k\" (string): choose another table name")
	}
	return nil
}

// expire enables the table's TTL on attribute ttl, and waits until it is enabled. DynamoDB declines while it is
// busy with the table. Emulators may not support TTL. Then nothing expires, and the rest works.
func (s *Store) expire(ctx context.Context, w *work) error {
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		status, err := s.forgetting(ctx, w)
		if err != nil {
			return unlessUnknown(err)
		}
		switch status {
		case types.TimeToLiveStatusEnabled:
			return nil
		case types.TimeToLiveStatusEnabling:
		default:
			if err := s.forget(ctx, w); err != nil && !declined(err) {
				return unlessUnknown(err)
			}
		}
		if err := s.o.sleep(ctx, wait/2+s.o.jitter(wait)); err != nil {
			return &TTLError{status, err}
		}
	}
}

// Interval between checks of the TTL.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 10 * time.Second
)

// A TTLError means that the table is usable, but its TTL was not yet enabled when Create's context ended. The
// caller can call Create again.
type TTLError struct {
	Status types.TimeToLiveStatus // as DynamoDB last reported
	Why    error
}

func (e *TTLError) Error() string {
	return fmt.Sprintf("the table is ready, but its TTL, which removes old items, is still %s: %v", e.Status, e.Why)
}

func (e *TTLError) Unwrap() error { return e.Why }

// CheckTTL returns a TTLError if the table's TTL is neither enabled nor being enabled. Such a table grows without
// bound. It returns nil if DynamoDB does not report the TTL, like emulators, or for a role without the permission.
func (s *Store) CheckTTL(ctx context.Context) error {
	w := &work{Call: Call{Op: "create"}, begin: s.o.now()}
	status, err := s.forgetting(ctx, w)
	_ = s.end(w, err)
	if err != nil || status == types.TimeToLiveStatusEnabled || status == types.TimeToLiveStatusEnabling {
		return nil
	}
	return &TTLError{status, errors.New("run weir store init")}
}

// forgetting returns the status of the table's TTL.
func (s *Store) forgetting(ctx context.Context, w *work) (status types.TimeToLiveStatus, err error) {
	var out *dynamodb.DescribeTimeToLiveOutput
	err = s.try(ctx, w, func() (err error) {
		out, err = s.api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.table}, s.options)
		return err
	})
	if err != nil {
		return "", err
	}
	if d := out.TimeToLiveDescription; d != nil {
		return d.TimeToLiveStatus, nil
	}
	return types.TimeToLiveStatusDisabled, nil
}

func (s *Store) forget(ctx context.Context, w *work) error {
	return s.try(ctx, w, func() error {
		_, err := s.api.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &s.table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
		}, s.options)
		return err
	})
}

// declined reports whether DynamoDB may accept the request later: the table or too many tables are being changed,
// or its TTL was changed within the last hour.
func declined(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	switch e.ErrorCode() {
	case "ResourceInUseException", "LimitExceededException":
		return true
	case "ValidationException":
		return strings.Contains(e.ErrorMessage(), "Time to live") || strings.Contains(e.ErrorMessage(), "TimeToLive")
	}
	return false
}

func unlessUnknown(err error) error {
	if e, ok := errors.AsType[smithy.APIError](err); ok && e.ErrorCode() == "UnknownOperationException" {
		return nil
	}
	return err
}
