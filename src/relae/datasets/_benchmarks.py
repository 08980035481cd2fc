"""The benchmarks of the field: where they come from, how they are prepared, and what they then look like."""

from difflib import get_close_matches

from relae.data import TableOptions
from relae.datasets._dataset import Dataset, DatasetFile, Expected, PaperRow
from relae.datasets._raw import movielens_forms, netflix_forms, triplet_forms
from relae.errors import DataError

_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_LIKED = "Ratings of 4 and more count as interactions, then users with at least 5 of them"
_HARPER = (
    "F. Maxwell Harper and Joseph A. Konstan. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5(4), 2015"
)
_NO_REDISTRIBUTION = (
    "Research use with acknowledgement; neither redistribution nor commercial use without permission of GroupLens."
)
_FOUR_AND_FIVE = TableOptions(min_rating=4, min_user_count=5)
_LIGHTGCN = "https://raw.githubusercontent.com/gusye1234/LightGCN-PyTorch/master/data"
_AS_PUBLISHED = "The 10-core train.txt and test.txt as LightGCN publishes them, taken together"


def _lightgcn_files(name: str, train: str, test: str, sizes: tuple[int, int] | None = None) -> tuple[DatasetFile, ...]:
    train_size, test_size = sizes or (None, None)
    return (
        DatasetFile("train.txt", f"{_LIGHTGCN}/{name}/train.txt", train, train_size),
        DatasetFile("test.txt", f"{_LIGHTGCN}/{name}/test.txt", test, test_size),
    )


BENCHMARKS = (
    Dataset(
        name="ml-20m",
        title="ML-20M",
        files=(DatasetFile("ml-20m.zip", f"{_GROUPLENS}/ml-20m.zip", "cd245b17a1ae2cc31bb14903e1204af3", 198_702_078),),
        licence=(
            "Research use with acknowledgement, redistribution under the same terms; no commercial use without "
            "permission of GroupLens."
        ),
        citation=_HARPER,
        homepage="https://grouplens.org/datasets/movielens/20m/",
        recipe=f"{_LIKED} (Mult-VAE).",
        paper=PaperRow(136_677, 20_108, "10.0M", 0.0036, 0.90),
        heldout=10_000,
        expected=Expected(136_677, 20_720, 9_990_682),
        note=(
            "The recipe leaves 20,720 items. The paper's 20,108 are those that the training users of the strong "
            "split have; its density goes with them."
        ),
        preparation=_FOUR_AND_FIVE,
        forms=movielens_forms("ml-20m.zip", "ratings.csv", "movies.csv"),
    ),
    Dataset(
        name="netflix",
        title="Netflix",
        files=(DatasetFile("nf_prize_dataset.tar.gz", None, "a8f23d2d76461211c6b4c0ca6df2547d"),),
        licence=(
            "Research use with acknowledgement; neither redistribution nor commercial use without permission of "
            "Netflix."
        ),
        citation="James Bennett and Stan Lanning. The Netflix Prize. KDD Cup and Workshop, 2007",
        homepage="https://archive.org/details/nf_prize_dataset.tar",
        recipe=f"{_LIKED} (Mult-VAE).",
        paper=PaperRow(463_435, 17_769, "56.9M", 0.0069, 0.86),
        heldout=40_000,
        expected=Expected(463_435, 17_769, 56_880_037),
        by_hand=(
            "Netflix no longer offers it: fetch nf_prize_dataset.tar.gz by hand from "
            "https://archive.org/details/nf_prize_dataset.tar and put it there, or the files combined_data_1.txt "
            "to combined_data_4.txt (and movie_titles.csv) of "
            "https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data, then run `relae datasets get netflix` "
            "to check it"
        ),
        preparation=_FOUR_AND_FIVE,
        forms=netflix_forms(),
    ),
    Dataset(
        name="msd",
        title="MSD",
        files=(
            DatasetFile(
                "train_triplets.txt.zip",
                "http://millionsongdataset.com/sites/default/files/challenge/train_triplets.txt.zip",
            ),
        ),
        licence="Published for research by The Echo Nest and LabROSA; the terms are on the homepage.",
        citation=(
            "Thierry Bertin-Mahieux, Daniel P. W. Ellis, Brian Whitman and Paul Lamere. The Million Song Dataset. "
            "ISMIR 2011"
        ),
        homepage="http://millionsongdataset.com/tasteprofile/",
        recipe=(
            "Whoever played a song interacted with it; songs with at least 200 listeners, then users with at least "
            "20 songs (Mult-VAE)."
        ),
        paper=PaperRow(571_355, 41_140, "33.6M", 0.0036, 0.56),
        heldout=50_000,
        expected=Expected(571_355, 41_140, 33_633_450),
        note="By the paper's own counts the density is 0.14%.",
        preparation=TableOptions(min_item_count=200, min_user_count=20),
        forms=triplet_forms(),
    ),
    Dataset(
        name="gowalla",
        title="Gowalla",
        files=_lightgcn_files(
            "gowalla",
            "5eec1eb2edb8dd648377d348b8e136cf",
            "c04e2c4bcd2389f53ed8281816166149",
            (4_633_414, 1_372_559),
        ),
        licence="Published for research by SNAP (loc-gowalla); the files name no licence.",
        citation=(
            "Eunjoon Cho, Seth A. Myers and Jure Leskovec. Friendship and Mobility: User Movement in Location-Based "
            "Social Networks. KDD 2011"
        ),
        homepage="https://snap.stanford.edu/data/loc-gowalla.html",
        recipe=f"{_AS_PUBLISHED}.",
        paper=PaperRow(29_858, 40_981, "1,027,370", 0.0001, 0.44),
        heldout=3_000,
        expected=Expected(29_858, 40_981, 1_027_370),
        note=(
            "By the paper's own counts the density is 0.08%. Its Gini, 0.44, is that of train.txt alone; of all "
            "interactions it is 0.43."
        ),
    ),
    Dataset(
        name="yelp2018",
        title="Yelp2018",
        files=_lightgcn_files("yelp2018", "1b8b5d22a227e01d6de002c53d32b4c4", "0d57d7399862c32152b045ec5d2698e7"),
        licence="From the Yelp Dataset, which is for academic use under Yelp's terms; the files name no licence.",
        citation="Xiang Wang, Xiangnan He, Meng Wang, Fuli Feng and Tat-Seng Chua. Neural Graph Collaborative "
        "Filtering. SIGIR 2019",
        homepage="https://business.yelp.com/data/resources/open-dataset/",
        recipe=f"{_AS_PUBLISHED}.",
        paper=PaperRow(31_668, 38_048, "1,561,406", 0.0013, 0.51),
        heldout=3_000,
        expected=Expected(31_668, 38_048, 1_561_406),
    ),
    Dataset(
        name="amazon-book",
        title="Amazon-book",
        files=_lightgcn_files("amazon-book", "c916ecac04ca72300a016228258b41ed", "30f8ccfea18d25007ba9fb9aba4e174d"),
        licence="From the Amazon reviews of J. McAuley, for academic use; the files name no licence.",
        citation=(
            "Ruining He and Julian McAuley. Ups and Downs: Modeling the Visual Evolution of Fashion Trends with "
            "One-Class Collaborative Filtering. WWW 2016"
        ),
        homepage="https://cseweb.ucsd.edu/~jmcauley/datasets.html",
        recipe=f"{_AS_PUBLISHED}.",
        paper=PaperRow(52_643, 91_599, "2,984,108", 0.0006, 0.46),
        heldout=5_000,
        expected=Expected(52_643, 91_599, 2_984_108),
    ),
    Dataset(
        name="ml-1m",
        title="ML-1M",
        files=(DatasetFile("ml-1m.zip", f"{_GROUPLENS}/ml-1m.zip", "c4d9eecfca2ab87c1945afe126590906"),),
        licence=_NO_REDISTRIBUTION,
        citation=_HARPER,
        homepage="https://grouplens.org/datasets/movielens/1m/",
        recipe=f"{_LIKED}.",
        expected=Expected(6_034, 3_533, 575_272),
        preparation=_FOUR_AND_FIVE,
        forms=movielens_forms("ml-1m.zip", "ratings.dat", "movies.dat"),
    ),
    Dataset(
        name="ml-100k",
        title="ML-100k",
        files=(DatasetFile("ml-100k.zip", f"{_GROUPLENS}/ml-100k.zip", "0e33842e24a9c977be4e0107933c0723", 4_924_029),),
        licence=_NO_REDISTRIBUTION,
        citation=_HARPER,
        homepage="https://grouplens.org/datasets/movielens/100k/",
        recipe=f"{_LIKED}; of 943 users, 1,682 films and 100,000 ratings.",
        preparation=_FOUR_AND_FIVE,
        forms=movielens_forms("ml-100k.zip", "u.data", "u.item"),
    ),
    Dataset(
        name="online-retail",
        title="Online Retail",
        files=(),
        licence="CC BY 4.0, with the attribution that comes with it.",
        citation=("Daqing Chen. Online Retail. UCI Machine Learning Repository, 2015, doi 10.24432/C5BW33"),
        homepage="https://doi.org/10.24432/C5BW33",
        recipe="Purchases of a year, aggregated to pairs of customer and product; comes with the package.",
        expected=Expected(4_339, 3_665, 266_802),
    ),
)


def names() -> list[str]:
    """Return the names of all data sets."""
    return [dataset.name for dataset in BENCHMARKS]


def get(name: str) -> Dataset:
    """Return a data set by its name.

    Raises
    ------
    DataError
        If there is none of that name; with the names that there are.
    """
    for dataset in BENCHMARKS:
        if name.lower() in (dataset.name, dataset.title.lower()):
            return dataset
    near = get_close_matches(name.lower(), names(), n=1, cutoff=0.5)
    meant = f"did you mean {near[0]!r}? " if near else ""
    raise DataError(f"there is no data set {name!r}: {meant}There are {', '.join(names())}")
