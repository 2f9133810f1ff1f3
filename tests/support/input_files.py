"""Lists, archives and pictures among the inputs."""

from __future__ import annotations

from support.inputs import (
    COCO,
    FIVE,
    HEIC,
    HUGGING,
    Input,
    as_json,
    beside,
    bomb,
    colours_up_to,
    content,
    files,
    grey16,
    jpeg12,
    manifest,
    metadata_in_splits,
    packed_tree,
    pages,
    parquet,
    shards,
    studio,
    tarred,
    zipped,
)

CATS, BOTH = {"cat": 2, "dog": 1}, {"cat": 1, "dog": 1}
LISTS = [
    Input(
        "CSV with `path, label, split`",
        manifest("path,label,split\n1.png,cat,train\n2.png,dog,test\n3.png,,\n", *FIVE[:3]),
        {"cat": 1},
        1,
        1,
    ),
    Input("CSV with `filename;class`", manifest("filename;class\n1.png;cat\n2.png;dog\n", *FIVE[:2]), BOTH),
    Input(
        "CSV with `Image, Category, Subset`",
        manifest("Image,Category,Subset\n1.png,cat,Training\n2.png,dog,valid\n3.png,dog,testing\n", *FIVE[:3]),
        BOTH,
        0,
        1,
    ),
    Input(
        "tabs, with `img` and `target`",
        manifest("img\ttarget\n1.png\t3\n2.png\t-1\n", *FIVE[:2], file="list.tsv"),
        {"3": 1},
        1,
    ),
    Input(
        "CSV with paths of Windows",
        manifest("file,label\ncats\\1.png,cat\ndogs\\1.png,dog\n", "cats/1.png", "dogs/1.png"),
        BOTH,
    ),
    Input(
        "CSV with a missing file",
        manifest("path,label\n1.png,cat\nx.png,cat\n", "1.png"),
        {"cat": 1},
        aside={"x.png": "there is no such file"},
    ),
    Input(
        "CSV with no file that is there",
        manifest("path,label\nx.png,cat\ny.png,cat\n"),
        error="lists 2 paths that do not exist",
    ),
    Input(
        "CSV whose pictures lie in `images/`",
        manifest("filename,label\n1.png,cat\n2.png,dog\n", "images/1.png", "images/2.png"),
        BOTH,
        tree="paths start at images/",
    ),
    Input(
        "CSV with numbers and names of classes",
        manifest("path,label,class_name\n1.png,0,cat\n2.png,1,dog\n", *FIVE[:2]),
        BOTH,
    ),
    Input(
        "CSV with two kinds of classes",
        manifest("path,label,category\n1.png,tabby,cat\n2.png,siamese,cat\n", *FIVE[:2]),
        {"siamese": 1, "tabby": 1},
        doubt="'label' and 'category' of list.csv say different things",
    ),
    Input(
        "CSV with a column of classes under another name",
        manifest("file,habitat\n1.png,sea\n2.png,land\n", *FIVE[:2]),
        {},
        2,
        tree="no column of classes was found; 'habitat' was not read",
    ),
    Input(
        "CSV without a column of paths",
        manifest("where,label\n1.png,cat\n", "1.png"),
        error="its columns are 'where' and 'label'",
    ),
    Input("CSV with an unknown split", manifest("path,split\n1.png,later\n", "1.png"), error="split is 'later'"),
    Input("CSV with a path elsewhere", manifest("path,label\n../x.png,cat\n"), error="--allow-outside takes it"),
    Input(
        "Parquet with paths", parquet({"path": ["1.png", "2.png"], "label": ["cat", None]}, *FIVE[:2]), {"cat": 1}, 1
    ),
    Input(
        "Parquet with pictures, as Hugging Face writes it",
        parquet(
            {
                "image": [{"bytes": content("a"), "path": "a.png"}, {"bytes": content("b"), "path": None}],
                "label": [1, 0],
            },
            facts=HUGGING,
        ),
        BOTH,
    ),
    Input(
        "Parquet with pictures as bytes",
        parquet({"image": [content("a"), content("b"), None], "label": ["cat", "dog", "dog"]}),
        BOTH,
        aside={"list.parquet, row 3": "no picture"},
    ),
    Input(
        "a folder of Parquet files, `train-00000-of-00002`",
        shards,
        {"cat": 2, "dog": 2},
        test=1,
        aside={"train-00000-of-00002.parquet, row 2": "no picture"},
    ),
    Input(
        "`metadata.jsonl` of Hugging Face",
        beside(
            '{"file_name": "1.png", "label": "cat"}\n{"file_name": "2.png", "label": "dog"}\n',
            *FIVE[:3],
            file="metadata.jsonl",
        ),
        BOTH,
        1,
    ),
    Input(
        "`metadata.csv` in each split",
        metadata_in_splits,
        {"cat": 1},
        0,
        1,
    ),
    Input(
        "`metadata.csv` that names no classes",
        beside("file_name,caption\n1.png,hello\n", "cat/1.png", "dog/1.png", file="metadata.csv"),
        BOTH,
        tree="metadata.csv names no classes",
    ),
    Input(
        "a CSV beside pictures without labels",
        beside("file,class\n1.png,cat\n", *FIVE[:2], file="labels.csv"),
        {},
        2,
        tree="labels.csv was not read: give it with --labels",
    ),
    Input(
        "JSON lines",
        manifest('{"path": "1.png", "label": 3}\n{"path": "2.png"}\n', *FIVE[:2], file="list.jsonl"),
        {"3": 1},
        1,
    ),
    Input(
        "JSON, a list of records",
        as_json([{"image": "1.png", "class": "cat"}, {"image": "2.png", "class": None}], *FIVE[:2]),
        {"cat": 1},
        1,
    ),
    Input(
        "COCO",
        as_json(COCO, *FIVE[:4]),
        BOTH,
        1,
        aside={"3.png": "several classes on one picture", "5.png": "no such file"},
    ),
    Input(
        "COCO in `annotations/`, pictures beside it",
        as_json(
            {**COCO, "images": COCO["images"][:2]},
            "train2017/1.png",
            "train2017/2.png",
            file="annotations/instances.json",
        ),
        BOTH,
    ),
    Input(
        "the folder of a COCO file",
        beside(COCO, "train2017/1.png", "train2017/2.png", file="annotations/instances.json"),
        {},
        2,
        tree="annotations/instances.json was not read: give it in place of the folder",
    ),
    Input(
        "FiftyOne, `data/` and `labels.json`",
        beside(
            {"classes": ["cat", "dog"], "labels": {"1": 0, "2": 1, "3": None}},
            "data/1.png",
            "data/2.png",
            "data/3.png",
            file="labels.json",
        ),
        BOTH,
        1,
    ),
    Input(
        "Label Studio",
        as_json(
            [
                studio("/data/upload/1/0a1b2c3d-1.png", "cat"),
                studio("/data/local-files/?d=photos/sub/2.png", "dog"),
                studio("s3://bucket/3.png"),
                studio("4.png", "cat", "dog"),
            ],
            "1.png",
            "sub/2.png",
            "3.png",
            "4.png",
        ),
        BOTH,
        1,
        aside={"4.png": "several classes"},
    ),
    Input("JSON of another kind", as_json({"hello": 1}), error="is no list of images that we know"),
    Input("embeddings with a wrong suffix", manifest(b"\x93NUMPY", file="x.npy"), error="cannot be read as data"),
]
ARCHIVES = [
    Input("zip of class folders", zipped(packed_tree("photos/cat/1 photos/cat/2 photos/dog/1")), CATS),
    Input(
        "zip made on a Mac",
        zipped({**packed_tree("cat/1 dog/1"), "__MACOSX/cat/._1.png": b"x", "cat/.DS_Store": b"x"}),
        BOTH,
    ),
    Input("zip made on Windows, with `\\`", zipped(packed_tree("cat\\1 dog\\1")), BOTH),
    Input("tar", tarred("photos.tar", "w"), CATS),
    Input("tar.gz", tarred("photos.tar.gz", "w:gz"), CATS),
    Input("tar.xz", tarred("photos.tar.xz", "w:xz"), CATS),
    Input("tar with a link", tarred("photos.tar", "w", "cat/2.png"), error="neither a file nor a folder"),
    Input("zip with `../`", zipped({"../evil.png": b"x"}), error="would be written outside its folder"),
    Input("zip with an absolute path", zipped({"/tmp/evil.png": b"x"}), error="would be written outside its folder"),
    Input("a zip bomb", bomb, error="times its own size"),
    Input("a damaged zip", manifest(b"PK\x03\x04 no more", file="photos.zip"), error="is not a readable archive"),
]
PICTURES = [
    Input(
        "JPEG, PNG, WebP, BMP, GIF",
        files(
            a_jpg=content("a", "JPEG"),
            b_webp=content("b", "WEBP"),
            c_bmp=content("c", "BMP"),
            d_gif=content("d", "GIF"),
        ),
        {"cat": 5, "dog": 1},
    ),
    Input(
        "TIFF, AVIF, JPEG 2000",
        files(
            a_tif=content("a", "TIFF", compression="tiff_lzw"),
            b_avif=content("b", "AVIF", speed=10),
            c_jp2=content("c", "JPEG2000"),
        ),
        {"cat": 4, "dog": 1},
    ),
    Input(
        "HEIC, without the extra `heif`",
        files(a_heic=HEIC),
        BOTH,
        aside={"cat/a.heic": 'pip install "agcd[heif]"'},
        without_heif=True,
    ),
    Input(
        "grey of 12 bits in 16, PNG and TIFF", files(a_png=grey16("PNG"), b_tif=grey16("TIFF")), {"cat": 3, "dog": 1}
    ),
    Input(
        "colours of 16 bits, and of 12 in 16",
        files(a_png=colours_up_to(65535), b_png=colours_up_to(4096)),
        {"cat": 3, "dog": 1},
    ),
    Input(
        "JPEG of 12 bits",
        files(a_jpg=jpeg12()),
        BOTH,
        aside={"cat/a.jpg": "not an image of a supported format"},
    ),
    Input("TIFF of several pages", files(a_tif=pages()), {"cat": 2, "dog": 1}),
    Input(
        "half a JPEG, a quarter of a PNG",
        files(a_jpg=content("a", "JPEG")[:-200], b_png=content("b")[:-900]),
        BOTH,
        aside={"cat/a.jpg": "damaged", "cat/b.png": "damaged"},
    ),
    Input(
        "an empty file, a text called .jpg",
        files(a_jpg=b"", b_jpg=b"hello"),
        BOTH,
        aside={"cat/a.jpg": "empty file", "cat/b.jpg": "not an image of a supported format"},
    ),
    Input("a PNG called .jpg", files(a_jpg=content("a")), CATS),
    Input(
        "SVG, PDF and raw pictures of cameras",
        files(a_svg=b"<svg/>", b_pdf=b"%PDF", c_nef=b"x"),
        BOTH,
        aside={"cat/a.svg": "format .svg is not supported", "cat/b.pdf": "format .pdf", "cat/c.nef": "format .nef"},
    ),
    Input("other files and hidden ones", files(a_txt=b"x", b_xml=b"x", _hidden_png=content("h")), BOTH),
]
