package sqlsink_test

const asSyncer = "TEST_BINARY_IS_SYNCER"

func syncer() int { return 0 }
