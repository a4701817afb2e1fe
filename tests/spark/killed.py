"""A streaming query over a folder of Parquet files, as a program of its own that can be killed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import vace_ad.spark
from spark.conftest import session


def main(folder):
    spark = session()
    models = vace_ad.spark.SparkModels(spark.read.parquet(f"{folder}/models"), "machine", "time")
    rows = (
        spark.readStream.schema("machine string, time timestamp, a double, b double, c double")
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{folder}/rows")
    )
    query = (
        models.stream(rows, budget="1 per week")
        .writeStream.format("parquet")
        .option("path", f"{folder}/alarms")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
