package main

import (
	"context"
	"errors"
)

func measureCrowd(ctx context.Context, o options) error { return errors.New("not yet") }
